// What a fabric looked like over a short while: the one value that every source of pages produces
// (lab, simulation, recording) and every page draws.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/link_condition.h"
#include "view/geometry.h"

namespace mrc::view {

using Nanoseconds = std::int64_t;

// From good to bad; of the links of a lane the worst counts, but it is down only when all are.
enum class LaneState : std::uint8_t {
  kHealthy,
  kSlow,        // carries less than it should
  kLossy,       // loses or damages some of what it carries
  kBlackHole,   // takes everything, delivers nothing
  kPartlyDown,  // some of its links are down
  kDown
};
LaneState state_of(const fabric::LinkCondition& condition);

struct Lane {
  std::uint16_t load_permille = 0;  // carried since the frame before, of what its rate would allow
  std::uint32_t queue_bytes = 0;    // waiting at its sending end now, all links together
  LaneState state = LaneState::kHealthy;
  friend bool operator==(const Lane&, const Lane&) = default;
};

// What befell packets where they were to enter the links of a lane, since the beginning.
struct LaneTally {
  std::uint64_t marks = 0;  // of labs; simulations count marks of all links together
  std::uint64_t trims = 0;
  std::uint64_t drops = 0;
  friend bool operator==(const LaneTally&, const LaneTally&) = default;
};

// What happened on the links of a lane in a span, together.
struct LaneTraffic {
  std::uint64_t bytes = 0;
  std::uint32_t links_down = 0;
  Nanoseconds span = 0;
};
// Sets the load, and the state when only some of its links are down. `lane.state` is the worst of
// them.
void settle(Lane& lane, const Geometry& geometry, LaneId id, const LaneTraffic& traffic);

struct FlowEnd {
  std::uint32_t source = 0;  // hosts
  std::uint32_t destination = 0;
  std::uint64_t bytes = 0;
  Nanoseconds started = 0;
  Nanoseconds ended = 0;
  bool ok = true;
};

struct FaultMark {
  Nanoseconds at = 0;
  bool begins = true;
  std::string text;  // as in a fault plan
};

// A number that a source tells with every frame. Those of one group share a chart.
struct Channel {
  std::string group;  // "resends", "marks", "trims", "drops", "paths", ...
  std::string name;   // "trimmed", "good", ...
};

struct Frame {
  static constexpr std::size_t kMaxFlows = 256;  // more are counted only

  Nanoseconds at = 0;
  Nanoseconds span = 0;                    // since the frame before
  std::vector<Lane> lanes;                 // by LaneId
  std::vector<LaneTally> tallies;          // likewise
  std::vector<std::uint64_t> plane_bytes;  // that reached hosts in this span, by plane
  std::vector<std::uint64_t> counters;     // since the beginning, one per counter channel
  std::vector<std::uint64_t> gauges;       // now, one per gauge channel
  std::vector<FlowEnd> flows;              // that ended in this span
  std::uint64_t flows_ended = 0;           // since the beginning
  std::vector<FaultMark> faults;           // in this span
};

}  // namespace mrc::view
