// The paths of one queue pair: which are in use, in which order, which to leave and which to probe.
//
// Every EV belongs to one plane (port). Data goes to the plane that has had the least of it, and
// within a plane round its active set, in a shuffled order that differs between queue pairs and is
// redrawn now and then. States and transitions follow the table in docs/protocol.md:
//
//   GOOD -> SKIP         marked by ECN or trimmed; passed over once (11.2.2: one packet revives at
//                        most one SKIP entry, and passes over it this time), or as often as its
//                        turn comes while its queue is longer than that of the others
//   any  -> ASSUMED_BAD  a packet was lost on it, or the peer said ALWAYS_SKIP; left at once, a
//                        backup of the same plane takes its place; probed until two answers in a
//                        row bring it back
//   any <-> DENIED       by the controller
//
// At least `min_active` EVs stay in use over all planes: at the floor the EV of that plane that
// went bad longest ago is used again in place of the new one, and without such an EV the new one
// stays. So does the last one of all to show life while the other leaves probes unanswered. What is
// used again without a sign of life is passed over as often as can be while there is better, by its
// plane and by the other planes. Likewise the last EV in use on the usable ports is never given up
// while traffic must flow. At the floor one answered probe is enough to bring an EV back, and what
// is sent again goes where the last sign of life came from.
//
// Doubt: when probes and packets have long stayed without any answer, what is called good may be as
// dead as the rest, and the way the peer's answers take as well. The same holds when the peer asks
// again and again and sends nothing new, since then it is our answers that get lost: a queue pair
// that only receives has nothing else to tell it. In doubt answers are also tried on EVs called bad
// and on backups, one after the other, and one answered probe is enough to bring an EV back.
//
// Probes: a bad EV is due one base period after it went bad, then after 2, 4, 8... base periods up
// to the cap; after a first answer it is due again within one base period. All bad EVs together get
// at most one probe per quarter of a base period, earliest due first, so hundreds of bad EVs share
// that rate and none is forgotten. A port that becomes usable starts its bad EVs afresh.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/fixed_array.h"
#include "base/prng.h"
#include "base/types.h"
#include "core/counters.h"
#include "core/ev_profile.h"
#include "core/event.h"

namespace mrc::core {

struct PathSetConfig {
  std::uint16_t min_active = 0;  // 0 = a quarter of the profile, at least 1
  std::uint16_t active_evs = 0;  // 0 = all; otherwise shared equally among the planes
  DurationNs probe_base_ns = 10 * kMicrosecondNs;  // first probe period; doubles up to the cap
  DurationNs probe_cap_ns = 10 * kMillisecondNs;
  bool oblivious = false;   // never skip an EV
  bool ev_counters = true;  // without: nobody will ask for them
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
  // usable path. Never `avoid` while another usable EV exists there. Counts the packet. Up to
  // `quantum` new packets in a row stay on one EV while it is good; 1 = spray packet by packet.
  EvIndex choose(PortMask free_ports, EvIndex avoid, unsigned quantum = 1);
  // Whether the plane whose turn it is can send: of two queue pairs this one should get the port.
  bool wants_one_of(PortMask free_ports) {
    const PortMask planes = planes_in_use();
    return !planes.empty() && free_ports.contains(least_loaded(planes).port);
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
  void on_trimmed(EvIndex ev);
  void on_lost(EvIndex ev, TimeNs now);
  void on_always_skip(EvIndex ev, TimeNs now);
  void on_delivered(EvIndex ev);  // a data packet on it was acknowledged
  // The peer asked for what it was told before, as if no answer had come; or sent something new.
  void on_asked_again();
  void on_peer_progress() {
    if (asked_again_ > 0) --asked_again_;
  }
  void on_probe_sent(EvIndex ev, TimeNs now);  // schedules the next one
  // Stands for on_marked too. Answers beyond one per probe sent are ignored while the EV is bad.
  void on_probe_answered(EvIndex ev, bool marked, TimeNs now);
  // A declared loss was wrong: the packet had arrived. Undoes the blame if nothing else speaks
  // against the EV: another loss, ALWAYS_SKIP or a probe that got no answer.
  void on_spurious_loss(EvIndex ev, TimeNs now);

  // Control.
  void set_denied(EvIndex ev, bool denied, TimeNs now);
  void set_usable_ports(PortMask ports);  // local and remote port state combined
  void set_probe_base(DurationNs base_ns) { config_.probe_base_ns = base_ns; }

  // Nothing has come back on any path for a long time, or our answers do not arrive.
  bool in_doubt() const { return hears_nothing() || answers_in_doubt(); }
  bool hears_nothing() const { return silent_sends_ >= kDoubtAfter; }
  bool answers_in_doubt() const { return asked_again_ >= kDoubtAfterQuestions; }

  // The bad EV whose probe is due and whose port is free, kNoEv when none.
  EvIndex due_probe(TimeNs now, PortMask free_ports) const;
  TimeNs next_probe_time() const;  // kNever when no EV of a usable port is bad

  EvState state(EvIndex ev) const;
  bool counts_evs() const { return !counters_.empty(); }
  const EvCounters& counters(EvIndex ev) const { return counters_[to_index(ev)]; }
  PortMask planes_in_use() const;  // usable ports that have at least one usable EV
  unsigned good_count() const;     // GOOD or SKIP, any port
  unsigned bad_count() const;
  unsigned size() const;
  const EvProfile& profile() const { return *profile_; }

  std::size_t memory_bytes() const;  // of this object and all it owns

 private:
  static constexpr std::uint16_t kNowhere = 0xFFFF;
  static constexpr std::uint16_t kDoubtAfter = 32;
  // A path that comes back is asked twice and a tail three times at most while answers arrive.
  static constexpr std::uint8_t kDoubtAfterQuestions = 8;
  static constexpr std::uint8_t kMostQuestions = 16;  // so many new packets end the doubt, or fewer
  static constexpr unsigned kMaxSkips = 15;
  static constexpr unsigned kMaxProbeLevel = 15;

  // What is known of one EV beside its counters. The second half matters while it is ASSUMED_BAD.
  struct Row {
    std::uint32_t drops = 0;     // since the last event
    std::uint16_t position = 0;  // in order_
    EvState state = EvState::kGood;
    std::uint8_t losses = 0;  // that speak against it
    TimeNs probe_due = 0;
    std::uint16_t heap_index = 0;  // in the plane's part of heap_
    std::uint16_t older = kNowhere;
    std::uint16_t newer = kNowhere;
    std::uint8_t probe_level : 4 = 0;  // the period is base * 2^level
    std::uint8_t skips_left : 4 = 0;   // while SKIP: how often it is still to be passed over
    bool probe_open : 1 = false;       // sent and not answered
    bool answered_once : 1 = false;
    bool blamed : 1 = false;  // by more than declared losses
  };
  static_assert(sizeof(Row) <= 24);

  // The plane's EVs stand in order_[begin, end): first the active ones in the order of use, then
  // the backups, then those that are bad or denied.
  struct Plane {
    std::uint64_t load = 0;  // packets sent on it, and those forgiven
    PortId port{};
    std::uint8_t rotations = 0;  // since the order was drawn; in rotation 0 it is being drawn
    std::uint16_t begin = 0;
    std::uint16_t active_end = 0;
    std::uint16_t usable_end = 0;
    std::uint16_t end = 0;
    std::uint16_t share = 0;   // the most EVs to be active
    std::uint16_t cursor = 0;  // next to be used; begin when nothing is active
    std::uint16_t bad_count = 0;
    std::uint16_t oldest_bad = kNowhere;
    std::uint16_t newest_bad = kNowhere;
    std::uint16_t control_cursor = 0;
    std::uint16_t control_turn = 0;  // control packets since the last sign of life
    std::uint16_t sweep_cursor = 0;  // an EV of any plane
    EvIndex confirmed = kNoEv;       // the EV of that sign
  };

  static constexpr std::uint16_t to_index(EvIndex ev) { return static_cast<std::uint16_t>(ev); }
  Row& row(EvIndex ev) { return rows_[static_cast<std::size_t>(ev)]; }
  const Row& row(EvIndex ev) const { return rows_[static_cast<std::size_t>(ev)]; }
  Plane& plane_of(PortId port) { return planes_[plane_index_[static_cast<unsigned>(port) - 1]]; }
  Plane& plane_of(EvIndex ev) { return plane_of(profile_->port(ev)); }

  // Set-up.
  void lay_out_planes();
  void fill_plane(Plane& plane, unsigned plane_count);

  // Choosing.
  Plane& least_loaded(PortMask candidates);
  std::uint64_t load(const Plane& plane) const;
  std::uint16_t next_position(Plane& plane, EvIndex avoid);
  EvIndex use(Plane& plane, std::uint16_t position);
  void count_use(EvIndex ev, Plane& plane);
  void count(EvIndex ev, std::uint32_t EvCounters::*counter) {
    if (counts_evs()) ++(counters_[to_index(ev)].*counter);
  }
  void charge(Plane& plane);
  bool can_stay(PortMask free_ports);
  bool prefers_confirmed(PortMask candidates, EvIndex avoid);
  bool passes_over(Plane& plane, std::uint16_t position, PortMask others, EvIndex avoid);
  EvIndex choose_beside(EvIndex avoid);
  std::uint16_t find_good(unsigned from, unsigned to, unsigned except) const;
  std::uint16_t after(const Plane& plane, std::uint16_t position) const;
  Plane& draw_plane(PortMask candidates);
  Plane& next_swept_plane(PortMask candidates);
  EvIndex control_ev(Plane& plane, unsigned turn);
  EvIndex next_of_sweep(Plane& plane);

  // Moving EVs between the parts of their plane.
  bool is_good(unsigned position) const {
    return ((good_bits_[position / 64] >> (position % 64)) & 1) != 0;
  }
  void set_state(EvIndex ev, EvState state);
  void swap_positions(unsigned a, unsigned b);
  void join(EvIndex ev);
  void leave(EvIndex ev);
  void enter_rotation(Plane& plane, unsigned position);
  void leave_rotation(Plane& plane, unsigned position);

  // Going bad and coming back.
  void skip(EvIndex ev, unsigned skips);
  void pass_over(EvIndex ev);
  bool assume_bad(EvIndex ev, TimeNs now);
  bool is_better_known(EvIndex ev, const Row& other) const;
  void watch_bad(EvIndex ev, TimeNs now);
  void forget_bad(EvIndex ev);
  void revive(EvIndex ev, EvState state);
  bool is_last_in_use(EvIndex ev);
  void keep_one_in_use();
  void confirm(EvIndex ev);
  void note_life();
  void note_silence();
  void report_state(EvIndex ev, EvState state);
  void report_planes();

  // Probe schedule: a binary heap by due time for each plane, in its part of heap_.
  DurationNs probe_period(unsigned level) const;
  void schedule(EvIndex ev, TimeNs due);
  void heap_put(Plane& plane, unsigned index, std::uint16_t ev);
  void heap_settle(Plane& plane, unsigned index);
  void restart_probes(Plane& plane);
  TimeNs first_due(const Plane& plane) const { return rows_[heap_[plane.begin]].probe_due; }

  const EvProfile* profile_;
  PathSetConfig config_;
  PathObserver* observer_;
  Prng prng_;
  FixedArray<Row> rows_;
  FixedArray<EvCounters> counters_;
  FixedArray<Plane> planes_;  // those of the profile, by port
  std::array<std::uint8_t, kMaxPorts> plane_index_{};
  FixedArray<std::uint16_t> order_;      // EVs, see Plane
  FixedArray<std::uint16_t> heap_;       // EVs, see schedule()
  FixedArray<std::uint64_t> good_bits_;  // by position: the EV there is GOOD
  PortMask usable_ports_;
  PortMask ports_with_usable_;  // an EV of that port is GOOD or SKIP
  PortMask ports_with_bad_;
  PortMask reported_in_use_;
  std::uint64_t max_load_ = 0;
  unsigned next_port_ = 0;         // breaks ties of load; a port - 1
  unsigned last_swept_plane_ = 0;  // an index of planes_
  std::uint16_t min_active_ = 0;
  EvIndex confirmed_ = kNoEv;       // the EV of the last sign of life
  EvIndex stay_ev_ = kNoEv;         // the EV of the last new packet
  std::uint16_t stay_left_ = 0;     // packets that may follow it there
  std::uint16_t silent_sends_ = 0;  // probes sent and packets lost since the last sign of life
  std::uint8_t asked_again_ = 0;    // questions since an EV in use showed life, less new packets
  std::uint16_t good_count_ = 0;
  std::uint16_t bad_count_ = 0;
  TimeNs last_now_ = 0;
  TimeNs next_probe_allowed_ = std::numeric_limits<TimeNs>::min();
};

}  // namespace mrc::core
