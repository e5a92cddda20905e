#include "demo/timeline.h"

#include <fmt/core.h>

#include <algorithm>

#include "text.h"

namespace mrc::demo {
namespace {

using tool::counted;
using tool::grouped;
using tool::microseconds;

std::string losses(const FaultReport& entry) {
  const CutTrace& trace = entry.trace;
  std::string text = "lost: " + counted(trace.data_lost, "data packet", "data packets");
  if (trace.data_lost > 0) {
    text += fmt::format(" of {} (at most {} each)",
                        counted(trace.flows_hit, "queue pair", "queue pairs"),
                        grouped(trace.most_lost_by_flow));
  }
  return fmt::format("{}, {}, {}", text, counted(trace.control_lost, "answer", "answers"),
                     counted(trace.probes_lost, "probe", "probes"));
}

std::string reaction(const Report& report, const FaultReport& entry) {
  const FaultObservation& seen = entry.observation;
  const std::string first = microseconds(seen.first_reaction_at - entry.fault.at);
  const std::string last = microseconds(seen.last_reaction_at - entry.fault.at);
  switch (entry.fault.kind) {
    case FaultKind::kPath:
      return fmt::format("given up {}, first after {}, last after {}",
                         counted(seen.reactions, "time", "times"), first, last);
    case FaultKind::kPlane:
      return fmt::format("{} given up one by one, first after {}, last after {}",
                         counted(seen.reactions, "path", "paths"), first, last);
    case FaultKind::kPort:
      return fmt::format("{} of {} peers told, first after {}, last after {}", seen.reactions,
                         report.options.hosts - 1, first, last);
  }
  return "";
}

std::string bypass(const FaultReport& entry) {
  if (entry.trace.data_lost == 0) return "no data packet was sent into it";
  const std::string last =
      fmt::format("last data packet after {}", microseconds(entry.bypass_ns()));
  if (entry.trace.longest_use_ns == 0) {
    return last + "; each queue pair left at its first loss";
  }
  return fmt::format("{}; each queue pair left within {} of its first loss", last,
                     microseconds(entry.trace.longest_use_ns));
}

Moment tell_cut(const Report& report, const FaultReport& entry) {
  Moment moment{.at = entry.fault.at, .kind = MomentKind::kCut, .what = describe(entry.fault)};
  moment.what += entry.fault.kind == FaultKind::kPort ? "; the host sees it" : "; nobody is told";
  moment.details.push_back(losses(entry));
  if (entry.observation.reactions > 0) moment.details.push_back(reaction(report, entry));
  moment.details.push_back(bypass(entry));
  return moment;
}

Moment tell_repair(const FaultReport& entry) {
  const auto plane = static_cast<unsigned>(entry.fault.plane);
  Moment moment{.at = entry.fault.repair_at, .kind = MomentKind::kRepair};
  moment.what = entry.fault.kind == FaultKind::kPort
                    ? fmt::format("plane {}: the port of host {} is back", plane, entry.fault.host)
                    : fmt::format("plane {}: its T1 switches are back", plane);
  const TimeNs again = entry.trace.first_data_after_at;
  moment.details.push_back(again == kNever
                               ? "no data has crossed it since"
                               : fmt::format("data crosses it again after {}",
                                             microseconds(again - entry.fault.repair_at)));
  return moment;
}

}  // namespace

std::vector<Moment> tell_timeline(const Report& report) {
  std::vector<Moment> moments;
  for (const FaultReport& entry : report.faults) {
    if (!entry.observation.happened) {
      moments.push_back(
          {.at = entry.fault.at,
           .kind = MomentKind::kMissed,
           .what = describe(entry.fault) + " (planned; the transfer was over before)"});
      continue;
    }
    moments.push_back(tell_cut(report, entry));
    if (entry.observation.repaired) moments.push_back(tell_repair(entry));
  }
  std::stable_sort(moments.begin(), moments.end(),
                   [](const Moment& a, const Moment& b) { return a.at < b.at; });
  return moments;
}

}  // namespace mrc::demo
