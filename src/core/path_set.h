// The paths of one queue pair: which are in use, in which order, and which are to be left or probed.
//
// Every EV belongs to one plane (port). Data rotates over the planes and, within a plane, over the EVs
// in its active set in a shuffled order that differs between queue pairs and is redrawn now and then.
// States and transitions follow the table in docs/protocol.md:
//
//   GOOD -> SKIP         marked by ECN or trimmed; passed over once (11.2.2: one packet revives at most
//                        one SKIP entry, and passes over it this time)
//   any  -> ASSUMED_BAD  a packet was lost on it, or the peer said ALWAYS_SKIP; left at once, replaced by
//                        a backup of the same plane, probed until two answers in a row bring it back
//   any <-> DENIED       by the controller
//
// At least `min_active` EVs stay in use over all planes: at the floor the EV of that plane that went bad
// longest ago is used again in place of the new one.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/prng.h"
#include "base/types.h"
#include "core/counters.h"
#include "core/ev_profile.h"
#include "core/event.h"

namespace mrc::core {

struct PathSetConfig {
  std::uint16_t min_active = 0;   // 0 = a quarter of the profile, at least 1
  std::uint16_t active_evs = 0;   // 0 = all; otherwise shared equally among the planes
  DurationNs probe_base_ns = 10 * kMicrosecondNs;  // first probe period; doubles up to the cap
  DurationNs probe_cap_ns = 10 * kMillisecondNs;
};

// State changes go out through this; the queue pair adds its number and time.
class PathObserver {
 public:
  virtual ~PathObserver() = default;
  virtual void on_ev_state(EvIndex ev, EvState state, std::uint32_t drops_since_last) = 0;
  virtual void on_ev_floor(EvIndex ev) = 0;
  virtual void on_plane_usable(PortId port, bool usable) = 0;
};

class PathSet {
 public:
  // Allocates everything it will ever need. The profile must outlive the set.
  PathSet(const EvProfile& profile, const PathSetConfig& config, std::uint64_t seed,
          PathObserver& observer);

  // The next EV for a data packet on one of `free_ports`, kNoEv when none of these ports has a usable
  // path. Never `avoid` while another usable EV exists there. Counts the packet.
  EvIndex choose(PortMask free_ports, EvIndex avoid);
  // An EV for a control packet: a known good one, preferably on `preferred`; kNoEv only when
  // `free_ports` holds no port of the profile at all. Changes no SKIP state and counts nothing.
  EvIndex choose_control(PortMask free_ports, PortId preferred);

  // Feedback.
  void on_marked(EvIndex ev);
  void on_trimmed(EvIndex ev);
  void on_lost(EvIndex ev, TimeNs now);
  void on_always_skip(EvIndex ev, TimeNs now);
  void on_delivered(EvIndex ev);                 // a data packet on it was acknowledged
  void on_probe_sent(EvIndex ev, TimeNs now);    // schedules the next one
  void on_probe_answered(EvIndex ev, bool marked, TimeNs now);
  // A declared loss was wrong: the packet had arrived. Undoes the blame if nothing else speaks against.
  void on_spurious_loss(EvIndex ev, TimeNs now);

  // Control.
  void set_denied(EvIndex ev, bool denied, TimeNs now);
  void set_usable_ports(PortMask ports);        // local and remote port state combined
  void set_probe_base(DurationNs base_ns) { config_.probe_base_ns = base_ns; }

  // The bad EV whose probe is due and whose port is free, kNoEv when none.
  EvIndex due_probe(TimeNs now, PortMask free_ports) const;
  TimeNs next_probe_time() const;               // kNever when no EV of a usable port is bad

  EvState state(EvIndex ev) const;
  const EvCounters& counters(EvIndex ev) const;
  PortMask planes_in_use() const;               // usable ports that have at least one usable EV
  unsigned good_count() const;                  // GOOD or SKIP, any port
  unsigned bad_count() const;
  unsigned size() const;
  const EvProfile& profile() const { return *profile_; }

  // Implementation in path_set.cc; the private part is the implementer's.
 private:
  const EvProfile* profile_;
  PathSetConfig config_;
};

}  // namespace mrc::core
