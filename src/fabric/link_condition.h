// What faults have made of a link: the one place where the actions of a fault plan get a meaning.
//
// The simulator, its lower bound, the lab and the lab of kernel switches all play their actions
// here. They differ in what they do about a condition, never in what the condition is.
//
//  * Down: a link is down while at least one fault holds it down. A T1 down from 10 to 30 us and
//    one of its cables down from 20 to 50 us: that cable is down from 10 to 50 us, whichever of the
//    two ends first, and the other cables of the T1 from 10 to 30 us.
//  * Rate, loss, corruption: of several faults of a kind the one that began last holds; when it
//    ends, the one that began before it. Rate 50 % from 0 and rate 10 % from 10 to 20 us: 50 %,
//    10 %, 50 %. Of faults that begin at one time the later in the plan began last.
//  * Faults of different kinds do not touch each other: a link may be slow and lossy at once, and
//    is so again after it was down.
//  * Flight: a link that goes down loses what is on it, and what is sent while it is down, also
//    when it is up again before that would have arrived. On a cable of 500 ns, down from 10.0 to
//    10.1 us, everything that left since 9.5 us is lost.
//
// Values only: no clock, no packets. Times are those of the actions and of the caller's packets.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "fabric/fault_plan.h"

namespace mrc::fabric {

// One direction of a cable, now.
struct LinkCondition {
  double rate_share = 1;  // of its nominal rate
  double loss = 0;        // probabilities, per packet
  double corrupt = 0;
  bool black_hole = false;  // takes everything, delivers nothing, and nobody is told
  bool down = false;

  // Some of what the link takes does not arrive as it was.
  bool spoils() const { return loss > 0 || corrupt > 0 || black_hole; }
  friend bool operator==(const LinkCondition&, const LinkCondition&) = default;
};

// For people: "rate 25 %, loss 1 %". Empty when the link is healthy.
std::string in_words(const LinkCondition& condition);

// The faults that one link has now, and what they come to.
class LinkFaults {
 public:
  // A fault begins, or one that had begun ends.
  void apply(const FaultAction& action);
  const LinkCondition& condition() const { return condition_; }

  // The flight on the link is lost. `last_arrival_ps` is when the last bit that has left so far
  // would be at the far end. For whoever carries packets: when the link goes down, and for each
  // packet that leaves while it is down. A time is enough, and no packet has to remember in which
  // life of its link it left, since links deliver in the order of sending.
  void lose_flight(Picoseconds last_arrival_ps);
  // Whether what would be at the far end at that time was not on the link when it was down.
  bool delivers(Picoseconds arrival_ps) const { return arrival_ps > lost_until_ps_; }

 private:
  struct Held {
    double value = 0;
    std::uint32_t fault = 0;
    FaultKind kind = FaultKind::kDown;
  };

  std::vector<Held> held_;          // in the order in which they began
  LinkCondition condition_;         // of `held_`, and of nothing else
  Picoseconds lost_until_ps_ = -1;  // never goes back
};

// The faults of all links. Links that never had one take no memory.
class FabricFaults {
 public:
  // Returns the condition that the link has from now on.
  const LinkCondition& apply(const FaultAction& action);
  const LinkFaults& of(LinkId link) const;
  bool is_down(LinkId link) const { return of(link).condition().down; }
  bool any_down() const { return links_down_ > 0; }
  // See LinkFaults; the link has or had a fault.
  void lose_flight(LinkId link, Picoseconds last_arrival_ps);

 private:
  std::unordered_map<std::uint32_t, LinkFaults> links_;
  std::uint32_t links_down_ = 0;  // of `links_`
};

}  // namespace mrc::fabric
