// What a sender lost, by queue pair, and on which planes and paths as far as the process tells of
// them (node/telemetry_page.h).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "openmrc_counters.h"

namespace mrc::tool::perf {

struct Plan;

struct QpLosses {
  std::uint32_t number = 0;
  std::uint64_t packets = 0;  // sent, those sent again included
  std::uint64_t resent = 0;
  std::uint64_t by_path_order = 0;
  std::uint64_t by_time = 0;
  std::uint64_t by_timeout = 0;
  std::uint64_t trimmed = 0;
  std::uint64_t refused = 0;
  std::uint64_t spurious = 0;  // known to its sender as taken for lost in error
  std::uint32_t paths = 0;
  std::uint32_t paths_bad = 0;  // a moment after the end

  std::uint64_t arrived = 0;  // of what the peer's queue pair sent to this one
  // By settle(). A sender alone cannot tell: on a busy host it takes for lost what comes late.
  std::uint64_t lost = 0;

  double share() const {
    return packets == 0 ? 0 : static_cast<double>(lost) / static_cast<double>(packets);
  }
};

// Packets of all kinds, also answers, since the beginning of the measurement.
struct PlaneLosses {
  unsigned plane = 0;
  std::uint64_t sent = 0;
  std::uint64_t arrived = 0;  // of what the peer sent on it
  std::uint64_t lost = 0;     // by settle()
};

// A path that is not in use at the end.
struct BadPath {
  std::uint32_t queue_pair = 0;
  unsigned plane = 0;
  std::uint32_t entropy = 0;
  std::uint64_t lost = 0;
};

struct Losses {
  std::vector<QpLosses> queue_pairs;
  std::vector<PlaneLosses> planes;  // empty: the process does not tell
  std::vector<BadPath> bad_paths;
};

// `counted` since the beginning of the measurement, with the paths as they are at its end.
QpLosses losses_of(std::uint32_t number, const openmrc_qp_counters& counted);

// What this process tells of a device's planes by now, which may take a moment.
std::vector<PlaneLosses> plane_counts(const std::string& device);
// The same since `before`, and its paths that are bad.
void add_planes(const std::string& device, const std::vector<PlaneLosses>& before, Losses& losses);

// What one side sent and the other did not get, when both have counted after the last packet: queue
// pairs that belong together stand at the same place. Of planes that only one side tells of nothing
// is known to be lost.
void settle(Losses& own, Losses& theirs);

nlohmann::json to_json(const Losses& losses);
// Checks everything and throws Failure; `peer` is named in it.
Losses parse_losses(const nlohmann::json& message, const Plan& plan, const std::string& peer);

}  // namespace mrc::tool::perf
