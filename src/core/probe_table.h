// Probes whose silence speaks against their path: those that ask about a tail or about the way back
// (docs/adr/0007). Probes of abandoned paths are not kept here; they carry their EV in the id.
//
// Owns the ids given out and the few probes that wait for an answer. At most eight do; a ninth
// takes the place of the oldest, of which nothing is concluded then. Sends nothing and judges no
// path.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/types.h"

namespace mrc::core {

class ProbeTable {
 public:
  struct Probe {
    std::uint16_t id = 0;
    EvIndex ev = kNoEv;  // kNoEv: free
    TimeNs sent_at = 0;
  };

  // A probe leaves now on `ev`; it is worth a look after `patience`. The id it carries, below
  // `id_limit`.
  std::uint16_t add(TimeNs now, EvIndex ev, DurationNs patience, std::uint16_t id_limit) {
    Probe* place = &probes_[0];
    for (Probe& probe : probes_) {
      if (probe.ev == kNoEv) {
        place = &probe;
        break;
      }
      if (probe.sent_at < place->sent_at) place = &probe;
    }
    last_id_ = static_cast<std::uint16_t>((last_id_ + 1) % id_limit);
    *place = {.id = last_id_, .ev = ev, .sent_at = now};
    look_at_ = std::min(look_at_, now + patience);
    return last_id_;
  }

  // The probe with this id, which is the caller's to release; none when nobody waits for it.
  Probe* find(std::uint16_t id) {
    for (Probe& probe : probes_) {
      if (probe.ev != kNoEv && probe.id == id) return &probe;
    }
    return nullptr;
  }
  static void release(Probe& probe) { probe.ev = kNoEv; }

  bool empty() const {
    return std::all_of(probes_.begin(), probes_.end(),
                       [](const Probe& probe) { return probe.ev == kNoEv; });
  }

  // When expire() has something to do at the earliest; kNever when nothing waits.
  TimeNs deadline() const { return look_at_; }

  // Asks `judge` about each probe: it answers with the time at which to ask again, or with `now` to
  // let the probe go unanswered.
  template <typename Judge>
  void expire(TimeNs now, Judge&& judge) {
    if (now < look_at_) return;
    look_at_ = kNever;
    for (Probe& probe : probes_) {
      if (probe.ev == kNoEv) continue;
      const TimeNs again = judge(probe);
      if (again > now) {
        look_at_ = std::min(look_at_, again);
      } else {
        release(probe);
      }
    }
  }

 private:
  static constexpr unsigned kMost = 8;

  std::array<Probe, kMost> probes_;
  std::uint16_t last_id_ = 0x7FFF;  // the first is 0 with a limit of 0x8000
  TimeNs look_at_ = kNever;
};

}  // namespace mrc::core
