// What is held against each EV, and what follows from the next signal.
//
// The standing of an EV moves by one table, kReactions; docs/protocol.md prints it. An EV in use
// that loses a packet leaves at once: a wrong guess costs a path for one round trip, a right one
// saves every packet after it. It comes back when two probes in a row are answered, or when the
// losses turn out to be none and nothing else speaks against it.
//
// This class keeps the books; whether an EV may leave at all (the floor) and who takes its place is
// decided by PathSet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/fixed_array.h"
#include "base/types.h"
#include "core/ev_profile.h"

namespace mrc::core {

enum class PathStanding : std::uint8_t { kInUse, kBad, kDenied };
enum class PathSignal : std::uint8_t {
  kLost,          // a packet on it
  kAlwaysSkip,    // the peer wants no packets on it
  kSpuriousLoss,  // a declared loss was none
  kProbeSent,
  kProbeAnswered,
  kDeny,  // the controller's orders
  kAllow,
};
enum class PathReaction : std::uint8_t {
  kNone,
  kLeave,    // goes bad, unless it is needed for want of others
  kCharge,   // one loss more speaks against it
  kExcuse,   // one loss less; comes back when none is left and it is not blamed
  kBlame,    // by more than declared losses; answers in a row start anew
  kAwait,    // an answer; one that is still missing blames it
  kCredit,   // the first answer in a row is noted, the second brings it back
  kTakeOut,  // denied
  kLetIn,    // in use, nothing held against it
};
inline constexpr unsigned kPathStandings = 3;
inline constexpr unsigned kPathSignals = 7;
// By standing and signal.
inline constexpr PathReaction kReactions[kPathStandings][kPathSignals] = {
    // Lost, always skip, spurious loss, probe sent, probe answered, deny, allow.
    {PathReaction::kLeave, PathReaction::kLeave, PathReaction::kNone, PathReaction::kNone,
     PathReaction::kNone, PathReaction::kTakeOut, PathReaction::kNone},
    {PathReaction::kCharge, PathReaction::kBlame, PathReaction::kExcuse, PathReaction::kAwait,
     PathReaction::kCredit, PathReaction::kTakeOut, PathReaction::kNone},
    {PathReaction::kNone, PathReaction::kNone, PathReaction::kNone, PathReaction::kNone,
     PathReaction::kNone, PathReaction::kNone, PathReaction::kLetIn},
};

class PathHealth {
 public:
  // Denied EVs of the profile start as such, all others in use. The profile must outlive this.
  explicit PathHealth(const EvProfile& profile);

  PathStanding standing(EvIndex ev) const { return rows_[index(ev)].standing; }

  enum class Outcome : std::uint8_t {
    kStays,
    kMustLeave,  // call go_bad() or keep it
    kAskAgain,   // one answer more is needed
    kMayReturn,  // call come_back()
    kIsDenied,   // standing changed
    kIsAllowed,  // standing changed
  };
  // `one_answer_is_enough`: a single answered probe brings the EV back.
  Outcome on(PathSignal signal, EvIndex ev, bool one_answer_is_enough = false);
  void go_bad(EvIndex ev);     // nothing held against it yet
  void come_back(EvIndex ev);  // to be in use
  // Only answers to probes speak for it, which are short: a path may carry those and nothing else.
  // The first packet that is known to have arrived ends that.
  void begin_trial(EvIndex ev) { rows_[index(ev)].on_trial = true; }
  void end_trial(EvIndex ev) { rows_[index(ev)].on_trial = false; }
  bool on_trial(EvIndex ev) const { return rows_[index(ev)].on_trial; }

  // Of the bad EVs of a plane.
  unsigned bad_count() const { return bad_count_; }
  PortMask bad_ports() const { return bad_ports_; }  // those with a bad EV
  EvIndex longest_bad(PortId port) const {
    return ev_or_none(planes_[profile_->plane(port)].oldest);
  }
  EvIndex last_bad(PortId port) const { return ev_or_none(planes_[profile_->plane(port)].newest); }
  // Something beside declared losses speaks against it: an order, or a probe without an answer.
  bool is_doubtful(EvIndex ev) const { return rows_[index(ev)].blamed || rows_[index(ev)].awaits; }
  // The plane was away: probes sent before say nothing.
  void forget_probes(PortId port);

  void count_drop(EvIndex ev) { ++drops_[index(ev)]; }
  std::uint32_t take_drops(EvIndex ev) { return std::exchange(drops_[index(ev)], 0); }

  std::size_t memory_bytes() const {  // of what it owns
    return rows_.memory_bytes() + drops_.memory_bytes() + planes_.memory_bytes();
  }

 private:
  static constexpr std::uint16_t kNobody = 0xFFFF;

  struct Row {
    std::uint16_t older = kNobody;  // neighbours in the plane's list of bad EVs
    std::uint16_t newer = kNobody;
    std::uint8_t losses = 0;  // that speak against it
    PathStanding standing : 2 = PathStanding::kInUse;
    bool awaits : 1 = false;  // a probe was sent and not answered
    bool answered_once : 1 = false;
    bool blamed : 1 = false;  // by more than declared losses
    bool on_trial : 1 = false;
  };
  static_assert(sizeof(Row) == 6);
  struct Plane {
    std::uint16_t oldest = kNobody;
    std::uint16_t newest = kNobody;
  };

  static constexpr std::size_t index(EvIndex ev) { return static_cast<std::size_t>(ev); }
  static EvIndex ev_or_none(std::uint16_t ev) { return ev == kNobody ? kNoEv : EvIndex{ev}; }
  static void charge(Row& row);
  void leave_list(EvIndex ev);

  const EvProfile* profile_;
  FixedArray<Row> rows_;
  FixedArray<std::uint32_t> drops_;  // since the last report
  FixedArray<Plane> planes_;
  PortMask bad_ports_;
  std::uint16_t bad_count_ = 0;
};

}  // namespace mrc::core
