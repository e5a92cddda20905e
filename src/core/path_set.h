// The paths of one queue pair: which are in use, in which order, which to leave and which to probe.
//
// Five components do the work, each with rules of its own:
//
//   Rotation       whose turn it is: planes by load, EVs in a shuffled order, SKIP
//   PathHealth     what is held against an EV, and by which signal it leaves and comes back
//   LossCredit     which losses are held against it
//   ProbeSchedule  when to probe which bad EV
//   ReversePaths   where answers go, the last sign of life, doubt
//
// What needs more than one of them is decided here:
//
// The floor. At least `min_active` EVs stay in use over all planes: at the floor the EV of that
// plane that went bad longest ago is used again in place of the new one, behind the backups where
// there are any, and without such an EV the new one stays. So does the last one of all to show life
// while the other leaves probes unanswered. What is used again without a sign of life is passed
// over as often as can be while there is better, by its plane and by the other planes. Likewise the
// last EV in use on the usable ports is never given up while traffic must flow. At the floor one
// answered probe is enough to bring an EV back, and what is sent again goes where the last sign of
// life came from.
//
// Ports. A plane is in use while both ends call its port up and it has an EV in use. A port that
// becomes usable starts its bad EVs afresh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/fixed_array.h"
#include "base/prng.h"
#include "base/types.h"
#include "core/counters.h"
#include "core/ev_profile.h"
#include "core/event.h"
#include "core/loss_credit.h"
#include "core/path_health.h"
#include "core/probe_schedule.h"
#include "core/reverse_paths.h"
#include "core/rotation.h"

namespace mrc::core {

struct PathSetConfig {
  std::uint16_t min_active = 0;  // 0 = a quarter of the profile, at least 1
  std::uint16_t active_evs = 0;  // 0 = all; otherwise shared equally among the planes
  DurationNs probe_base_ns = 10 * kMicrosecondNs;  // first probe period; doubles up to the cap
  DurationNs probe_cap_ns = 10 * kMillisecondNs;
  PortTurns* turns = nullptr;  // of the endpoint; none: every order is drawn
  bool oblivious = false;      // never skip an EV
  bool ev_counters = true;     // without: nobody will ask for them
};

// State changes go out through this; the queue pair adds its number and time. SKIP is not reported:
// GOOD stands for both. The calls come from inside PathSet and must not call it back.
class PathObserver {
 public:
  virtual ~PathObserver() = default;
  virtual void on_ev_state(EvIndex ev, EvState state, std::uint32_t drops_since_last) = 0;
  virtual void on_ev_floor(EvIndex ev) = 0;
  virtual void on_plane_usable(PortId port, bool usable) = 0;
};

class PathSet {
 public:
  // Allocates everything it will ever need. The profile must outlive the set. All ports of the
  // profile count as usable at first; nothing is reported from here.
  PathSet(const EvProfile& profile, const PathSetConfig& config, std::uint64_t seed,
          PathObserver& observer);

  // The next EV for a data packet on one of `free_ports`, kNoEv when none of these ports has a
  // usable path. Never `avoid` while another usable EV exists there, and by another plane than that
  // of `avoid` while one has a good EV. Counts the packet. Up to `quantum` new packets in a row
  // stay on one EV while it is good; 1 = spray packet by packet.
  EvIndex choose(PortMask free_ports, EvIndex avoid, unsigned quantum = 1);
  // So many more packets would stay on the EV of the last one; and so many do.
  unsigned may_stay(PortMask free_ports) const;
  void stay(unsigned packets);
  // Whether a plane whose turn it is can send: of two queue pairs this one should get the port.
  bool wants_one_of(PortMask free_ports) const {
    return rotation_.is_turn_of_any(free_ports, planes_in_use());
  }
  // An EV for a control packet: a known good one, preferably on `preferred`. While any plane is in
  // use, kNoEv when none of those is free: an idle port is no reason to send into a dead plane.
  // With no plane in use, any EV on a free port of the profile. Counts nothing, changes no SKIP.
  EvIndex choose_control(PortMask free_ports, PortId preferred);

  // The free planes in turn, and of each the next EV that is not denied, good or bad, usable or
  // not: for packets that nothing will ever tell us the fate of. What the peer said of its ports
  // does not count here. Where both ends have such old news of the only plane that is left, news
  // must travel on that plane. kNoEv when no free port has an EV.
  EvIndex sweep(PortMask free_ports);

  // Feedback.
  void on_marked(EvIndex ev);
  // An answer came late by the time in which so many packets left, on all paths.
  void on_late(EvIndex ev, std::uint32_t packets);
  // False when the loss is excused: it is no more than what all paths lose.
  bool on_lost(EvIndex ev, TimeNs now);
  void on_always_skip(EvIndex ev, TimeNs now);
  void on_delivered(EvIndex ev);  // a data packet on it was acknowledged
  // The peer asked for what it was told before, as if no answer had come; or sent something new.
  void on_asked_again() { reverse_.on_asked_again(); }
  void on_peer_progress(unsigned packets = 1) { reverse_.on_peer_progress(packets); }
  void on_probe_sent(EvIndex ev, TimeNs now);  // schedules the next one
  // Stands for on_marked too. Answers beyond one per probe sent are ignored while the EV is bad.
  // `stamp`: of an answer to a probe of a bad path, whose round trip counts where the answer does.
  void on_probe_answered(EvIndex ev, bool marked, TimeNs now,
                         std::optional<std::uint16_t> stamp = {});
  // A declared loss was wrong: the packet had arrived. Undoes the blame if nothing else speaks
  // against the EV: another loss, ALWAYS_SKIP or a probe that got no answer.
  void on_spurious_loss(EvIndex ev, TimeNs now);

  // Control.
  void set_denied(EvIndex ev, bool denied, TimeNs now);
  void set_usable_ports(PortMask ports);  // local and remote port state combined
  void pace_probes(DurationNs base_ns, ProbeTurns& turns) { probes_.pace(base_ns, turns); }

  // Takes the place of `before`, whose profile has as many EVs: those that are the same in both
  // keep what is known of them. Nothing is reported of these.
  void take_over(const PathSet& before, TimeNs now);

  const ReversePaths& reverse() const { return reverse_; }  // what is doubted

  // The bad EV whose probe is due and whose port is free, kNoEv when none.
  EvIndex due_probe(TimeNs now, PortMask free_ports) const;
  TimeNs next_probe_time() const;  // kNever when no EV of a usable port is bad

  EvState state(EvIndex ev) const;
  bool counts_evs() const { return !counters_.empty(); }
  const EvCounters& counters(EvIndex ev) const { return counters_[static_cast<std::size_t>(ev)]; }
  // Usable ports that have at least one EV in use.
  PortMask planes_in_use() const { return usable_ports_ & rotation_.ports(); }
  unsigned good_count() const { return rotation_.in_use_count(); }  // GOOD or SKIP, any port
  unsigned bad_count() const { return health_.bad_count(); }
  unsigned size() const { return profile_->size(); }
  const EvProfile& profile() const { return *profile_; }

  std::size_t memory_bytes() const;  // of this object and all it owns

 private:
  // Choosing.
  bool prefers_confirmed(PortMask candidates, EvIndex avoid) const;
  bool passes_over(EvIndex ev, PortMask others, EvIndex avoid);
  EvIndex use(EvIndex ev);
  void count(EvIndex ev, std::uint32_t EvCounters::*counter, unsigned packets = 1) {
    if (counts_evs()) counters_[static_cast<std::size_t>(ev)].*counter += packets;
  }

  // Leaving and coming back.
  void skip(EvIndex ev, unsigned turns);
  void speak_against(EvIndex ev, PathSignal signal, TimeNs now);
  bool assume_bad(EvIndex ev, TimeNs now);
  void keep_for_want_of_others(EvIndex ev);
  bool at_floor() const { return rotation_.in_use_count() <= min_active_; }
  bool is_last_in_use(EvIndex ev) const;
  bool is_better_known(EvIndex ev, EvIndex other) const;
  void come_back(EvIndex ev);
  void keep_one_in_use();
  void confirm(EvIndex ev);
  void report_state(EvIndex ev, EvState state);
  void report_planes();

  const EvProfile* profile_;
  PathObserver* observer_;
  Prng prng_;
  Rotation rotation_;
  PathHealth health_;
  LossCredit losses_;
  ProbeSchedule probes_;
  ReversePaths reverse_;
  FixedArray<EvCounters> counters_;
  PortMask usable_ports_;
  PortMask reported_in_use_;
  std::uint16_t min_active_ = 0;
  bool oblivious_ = false;
  EvIndex stay_ev_ = kNoEv;      // the EV of the last new packet
  std::uint16_t stay_left_ = 0;  // packets that may follow it there
  TimeNs last_now_ = 0;
};

}  // namespace mrc::core
