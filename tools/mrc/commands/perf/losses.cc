#include "commands/perf/losses.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/types.h"
#include "commands/perf/plan.h"
#include "commands/perf/protocol.h"
#include "node/telemetry_reader.h"
#include "os/clock.h"

namespace mrc::tool::perf {
namespace {

using nlohmann::json;

// Pages are written once a second by a process that is idle.
constexpr DurationNs kPatienceNs = 1'500 * kMillisecondNs;
constexpr std::chrono::milliseconds kStep{20};
constexpr std::uint64_t kMaxNumber = 0xff'ffff;

node::TelemetryListing own_page(const std::string& device) {
  return node::read_telemetry({.directory = node::telemetry_directory(),
                               .pid = static_cast<std::uint64_t>(::getpid()),
                               .device = device});
}

// As of now or later; of a process that falls behind, what there is.
node::TelemetryListing page_of_now(const std::string& device) {
  const TimeNs now = os::monotonic_now();
  for (;;) {
    node::TelemetryListing listing = own_page(device);
    if (listing.readings.empty() || listing.readings.front().body.written_ns >= now ||
        os::monotonic_now() > now + kPatienceNs)
      return listing;
    std::this_thread::sleep_for(kStep);
  }
}

std::vector<PlaneLosses> planes_of(const node::TelemetryBody& body) {
  std::vector<PlaneLosses> planes;
  for (std::size_t i = 0; i < body.plane_count; ++i) {
    const node::TelemetryPlane& plane = body.planes[i];
    planes.push_back(
        {.plane = plane.plane(), .sent = plane.packets_sent, .arrived = plane.packets_received});
  }
  return planes;
}

bool has(const Losses& losses, std::uint32_t queue_pair) {
  return std::ranges::find(losses.queue_pairs, queue_pair, &QpLosses::number) !=
         losses.queue_pairs.end();
}

void take(const node::TelemetryBody& body, const std::vector<PlaneLosses>& before, Losses& losses) {
  losses.planes = planes_of(body);
  for (PlaneLosses& plane : losses.planes) {
    const auto earlier = std::ranges::find(before, plane.plane, &PlaneLosses::plane);
    if (earlier == before.end()) continue;
    plane.sent -= std::min(plane.sent, earlier->sent);
    plane.arrived -= std::min(plane.arrived, earlier->arrived);
  }
  for (std::size_t i = 0; i < body.listed_paths; ++i) {
    const node::TelemetryPath& path = body.paths[i];
    if (path.state != static_cast<std::uint32_t>(core::EvState::kAssumedBad)) continue;
    if (!has(losses, path.queue_pair)) continue;
    losses.bad_paths.push_back({.queue_pair = path.queue_pair,
                                .plane = path.plane(),
                                .entropy = path.entropy,
                                .lost = path.lost});
  }
}

struct Bound {
  const char* key;
  std::size_t most;
};

// A list of rows of so many numbers.
std::vector<std::vector<std::uint64_t>> read_rows(const json& message, Bound bound,
                                                  std::size_t columns, const std::string& peer) {
  const auto list = message.find(bound.key);
  if (list == message.end() || !list->is_array() || list->size() > bound.most)
    refuse(peer, bound.key);
  std::vector<std::vector<std::uint64_t>> rows;
  for (const json& row : *list) {
    if (!row.is_array() || row.size() != columns) refuse(peer, bound.key);
    rows.emplace_back();
    for (const json& number : row) {
      if (!number.is_number_unsigned()) refuse(peer, bound.key);
      rows.back().push_back(number.get<std::uint64_t>());
    }
  }
  return rows;
}

// Numbers of queue pairs, planes and paths are small; whoever sends others may see them cut.
std::uint32_t small(std::uint64_t number) {
  return static_cast<std::uint32_t>(std::min(number, std::uint64_t{UINT32_MAX}));
}

}  // namespace

QpLosses losses_of(std::uint32_t number, const openmrc_qp_counters& counted) {
  return {.number = number,
          .packets = counted.packets_sent,
          .resent = counted.retransmitted,
          .by_path_order = counted.lost_by_path_order,
          .by_time = counted.lost_by_time,
          .by_timeout = counted.lost_by_timeout,
          .trimmed = counted.trimmed,
          .refused = counted.refused,
          .spurious = counted.spurious,
          .paths = counted.paths_good + counted.paths_skipped + counted.paths_assumed_bad +
                   counted.paths_denied,
          .paths_bad = counted.paths_assumed_bad};
}

std::vector<PlaneLosses> plane_counts(const std::string& device) {
  node::TelemetryListing listing = own_page(device);
  if (listing.readings.empty()) return {};
  // Before the first packet an old page is as good as one of now, and nobody has to wait for it.
  std::vector<PlaneLosses> planes = planes_of(listing.readings.front().body);
  const bool moved = std::ranges::any_of(
      planes, [](const PlaneLosses& plane) { return plane.sent + plane.arrived > 0; });
  if (!moved) return planes;
  listing = page_of_now(device);
  return listing.readings.empty() ? planes : planes_of(listing.readings.front().body);
}

void add_planes(const std::string& device, const std::vector<PlaneLosses>& before, Losses& losses) {
  const node::TelemetryListing listing = page_of_now(device);
  if (!listing.readings.empty()) take(listing.readings.front().body, before, losses);
}

json to_json(const Losses& losses) {
  json pairs = json::array();
  for (const QpLosses& qp : losses.queue_pairs)
    pairs.push_back({qp.number, qp.packets, qp.resent, qp.by_path_order, qp.by_time, qp.by_timeout,
                     qp.trimmed, qp.refused, qp.spurious, qp.paths, qp.paths_bad, qp.arrived});
  json planes = json::array();
  for (const PlaneLosses& plane : losses.planes)
    planes.push_back({plane.plane, plane.sent, plane.arrived});
  json paths = json::array();
  for (const BadPath& path : losses.bad_paths)
    paths.push_back({path.queue_pair, path.plane, path.entropy, path.lost});
  return {{"queue_pairs", pairs}, {"planes", planes}, {"bad_paths", paths}};
}

Losses parse_losses(const json& message, const Plan& plan, const std::string& peer) {
  Losses losses;
  for (const auto& row : read_rows(message, {"queue_pairs", plan.qps}, 12, peer)) {
    if (row[0] > kMaxNumber) refuse(peer, "queue_pairs");
    losses.queue_pairs.push_back({.number = small(row[0]),
                                  .packets = row[1],
                                  .resent = row[2],
                                  .by_path_order = row[3],
                                  .by_time = row[4],
                                  .by_timeout = row[5],
                                  .trimmed = row[6],
                                  .refused = row[7],
                                  .spurious = row[8],
                                  .paths = small(row[9]),
                                  .paths_bad = small(row[10]),
                                  .arrived = row[11]});
  }
  for (const auto& row : read_rows(message, {"planes", kMaxPorts}, 3, peer))
    losses.planes.push_back({.plane = small(row[0]), .sent = row[1], .arrived = row[2]});
  for (const auto& row : read_rows(message, {"bad_paths", node::kTelemetryPaths}, 4, peer))
    losses.bad_paths.push_back({.queue_pair = small(row[0]),
                                .plane = small(row[1]),
                                .entropy = small(row[2]),
                                .lost = row[3]});
  return losses;
}

}  // namespace mrc::tool::perf
