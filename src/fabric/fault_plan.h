// Faults as a value: what breaks, how, when and for how long. Written by people in one line each,
// executed by the simulator and by the virtual cluster.
//
//   t0:3/t1:5/plane:0 down @10us for 2ms      a cable, both directions
//   t0:3>t1:5/plane:0 down @10us              one direction, for ever
//   t0:3/t1:5/cable:2/plane:0 down @10us      one of several cables between the two
//   t1:5/plane:0 down @1ms for 500us          a switch with all its cables
//   host:7/plane:2 down @20us                 a NIC port
//   t0:3/t1:5/plane:0 rate 25% @0
//   t0:3/t1:5/plane:0 loss 1% @0              random loss; `corrupt 1%` likewise
//   t0:3/t1:5/plane:0 flap 100us/300us @1ms for 10ms    100 us down, 300 us up, again and again
//   t0:3/plane:0 blackhole t1:5 @10us         the switch silently loses what goes to that neighbour
//   t1:*/plane:* ...                          a star stands for every number
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/topology.h"

namespace mrc::fabric {

inline constexpr Picoseconds kForever = INT64_MAX;

enum class FaultKind : std::uint8_t { kDown, kRate, kLoss, kCorrupt, kFlap, kBlackHole };
const char* fault_kind_name(FaultKind kind);

// One line of a plan, resolved: every link it touches.
struct Fault {
  FaultKind kind = FaultKind::kDown;
  std::string text;           // as written, for reports
  std::vector<LinkId> links;  // directed
  // Host ports whose carrier goes away with a kDown or kFlap: those at the end of one of the links.
  bool link_state_visible = true;
  Picoseconds start_ps = 0;
  Picoseconds duration_ps = kForever;
  double value = 0;  // rate as a share of nominal, or probability
  Picoseconds flap_down_ps = 0;
  Picoseconds flap_up_ps = 0;
};

// Throws InputError with the place and the reason: bad grammar, or a name that the fabric lacks.
Fault parse_fault(std::string_view text, const Topology& topology);
// One fault per line; empty lines and lines that begin with # are skipped. `origin` names the
// source in errors.
std::vector<Fault> parse_fault_file(std::string_view text, const std::string& origin,
                                    const Topology& topology);

// One fault begins or ends on one link. What that makes of the link is told by LinkFaults
// (link_condition.h), the same for everybody who executes a plan.
struct FaultAction {
  Picoseconds time_ps = 0;
  LinkId link = kNoLink;
  FaultKind kind = FaultKind::kDown;  // a flap is a row of kDown
  bool begins = true;
  double value = 0;         // that of the fault, at its begin and at its end
  std::uint32_t fault = 0;  // position in the plan
};
static_assert(sizeof(FaultAction) <= 32);  // a plan may have 8 million of them

// The begin of a fault, with neither time nor link.
FaultAction begin_of(const Fault& fault, std::uint32_t position);

// All actions up to `end_ps` (flaps repeat until then), sorted by time, then by position.
std::vector<FaultAction> timeline(const std::vector<Fault>& plan, Picoseconds end_ps);

}  // namespace mrc::fabric
