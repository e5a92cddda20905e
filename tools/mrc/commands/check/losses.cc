#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "commands/check/transfer.h"
#include "text.h"

namespace mrc::tool::check {
namespace {

using doctor::Findings;
using doctor::Verdict;

constexpr std::size_t kMostEntropies = 4;  // named in a line

// Where most of it was lost, as far as that is told.
std::string where(const perf::Losses& losses) {
  std::uint64_t sum = 0;
  for (const perf::PlaneLosses& plane : losses.planes)
    sum += plane.lost;
  if (sum == 0) return {};
  const auto worst = std::ranges::max_element(losses.planes, {}, &perf::PlaneLosses::lost);
  return fmt::format("; plane {} has {} of the losses of all queue pairs", worst->plane,
                     percent(static_cast<double>(worst->lost), static_cast<double>(sum)));
}

std::string share_text(double share) { return fmt::format("{:.2f} %", 100 * share); }

void judge_queue_pair(const perf::QpLosses& qp, const perf::Losses& all, const std::string& way,
                      double most_loss, Findings& findings) {
  const std::string what = fmt::format("queue pair {:#x} {}", qp.number, way);
  const std::string lost = fmt::format("lost {} of {} packets, {}", grouped(qp.lost),
                                       grouped(qp.packets), share_text(qp.share()));
  if (qp.share() <= most_loss) {
    findings.push_back({Verdict::kOk, what, lost, {}});
    return;
  }
  findings.push_back(
      {Verdict::kBroken, what,
       fmt::format("{}; its sender missed by path order {}, by time {}, by timeout {} (trimmed {}, "
                   "refused {}){}",
                   lost, qp.by_path_order, qp.by_time, qp.by_timeout, qp.trimmed, qp.refused,
                   where(all)),
       fmt::format("look for the cable, port or switch (`mrc map`, `mrc stat` on both hosts); "
                   "--loss, now {}, allows more",
                   share_text(most_loss))});
}

struct BadPlane {
  unsigned paths = 0;
  std::string entropies;
};

void judge_paths(const perf::Losses& losses, const std::string& way, Findings& findings) {
  std::map<unsigned, BadPlane> planes;
  for (const perf::BadPath& path : losses.bad_paths) {
    BadPlane& plane = planes[path.plane];
    if (++plane.paths <= kMostEntropies)
      plane.entropies +=
          fmt::format("{}{:#x}/{:#x}", plane.paths == 1 ? "" : ", ", path.queue_pair, path.entropy);
  }
  const char* const fix =
      "nothing came back on them: look for the cable, port or switch (`mrc map`), or take it out "
      "of use (`mrc drain`)";
  for (const auto& [number, plane] : planes) {
    findings.push_back({Verdict::kBroken, fmt::format("plane {} {}", number, way),
                        fmt::format("{} at the end: {}{} (queue pair/EV)",
                                    counted(plane.paths, "path is bad", "paths are bad"),
                                    plane.entropies, plane.paths > kMostEntropies ? " ..." : ""),
                        fix});
  }
  if (!losses.planes.empty()) return;
  // Of a process that does not tell which.
  for (const perf::QpLosses& qp : losses.queue_pairs) {
    if (qp.paths_bad == 0) continue;
    findings.push_back({Verdict::kBroken, fmt::format("queue pair {:#x} {}", qp.number, way),
                        fmt::format("{} of {} paths are bad at the end", qp.paths_bad, qp.paths),
                        fix});
  }
}

}  // namespace

void judge_losses(const perf::Losses& losses, const std::string& way, double most_loss,
                  Findings& findings) {
  for (const perf::QpLosses& qp : losses.queue_pairs)
    judge_queue_pair(qp, losses, way, most_loss, findings);
  judge_paths(losses, way, findings);
}

}  // namespace mrc::tool::check
