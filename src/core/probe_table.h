// Probes whose silence speaks against their path: those that ask about a tail or about the reverse
// path (docs/adr/0007). Probes of abandoned paths are not kept here; they carry their EV in the id.
//
// Owns the ids given out and the few probes that wait for an answer. At most eight do; a ninth
// takes the place of the oldest, of which nothing is concluded then. Sends nothing and judges no
// path.
//
// Lateness: an answer to a probe that is no longer waited for says that answers take longer than
// expected, but not how long, since its stamp is not held against a record. Each one doubles the
// patience, until answers are in time and tell their round trip; each of those halves it again.
// Where 10 us are expected and 130 us is the truth, every probe would otherwise be given up.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/planted_bug.h"
#include "base/types.h"

namespace mrc::core {

class ProbeTable {
 public:
  struct Probe {
    std::uint16_t id = 0;
    EvIndex ev = kNoEv;
    TimeNs sent_at = 0;
  };

  ProbeTable() { evs_.fill(kNoEv); }

  // A probe leaves now on `ev`; it is worth a look after `patience`. The id it carries, below
  // `id_limit`.
  std::uint16_t add(TimeNs now, EvIndex ev, DurationNs patience, std::uint16_t id_limit) {
    unsigned place = 0;
    for (unsigned i = 0; i < kMost; ++i) {
      if (evs_[i] == kNoEv) {
        place = i;
        break;
      }
      if (sent_at_[i] < sent_at_[place]) place = i;
    }
    last_id_ = static_cast<std::uint16_t>((last_id_ + 1) % id_limit);
    answered_ <<= 1;
    ids_[place] = last_id_;
    evs_[place] = ev;
    sent_at_[place] = now;
    look_at_ = std::min(look_at_, now + patience);
    return last_id_;
  }

  // The probe with this id, nothing when nobody waits for it.
  std::optional<Probe> find(std::uint16_t id) const {
    const unsigned place = place_of(id);
    if (place == kMost) return std::nullopt;
    return Probe{.id = id, .ev = evs_[place], .sent_at = sent_at_[place]};
  }
  // Its answer has come in time.
  void on_answered(std::uint16_t id) {
    const unsigned place = place_of(id);
    if (place < kMost) evs_[place] = kNoEv;
    if (age(id) < answered_.size()) answered_.set(age(id));
    if (lateness_ > 0) --lateness_;
  }
  // An answer that nobody waits for: whether it is late. Copies of it and answers to what was never
  // asked are not.
  bool on_unexpected(std::uint16_t id) {
    if (age(id) >= answered_.size() || answered_.test(age(id))) return false;
    if (MRC_BUG(kLateAnswersSayNothing)) return false;
    answered_.set(age(id));
    if (lateness_ < kMostLate) ++lateness_;
    return true;
  }
  unsigned lateness() const { return lateness_; }  // how often patience is to be doubled
  // How often the time for an answer is doubled before silence counts, and before a tail is asked
  // about, when it has been `asked` in vain already. The first question is in time even where
  // answers come late: the retry timer is the last resort, and one question for each sign of the
  // peer crowds nobody.
  unsigned before_answer(unsigned asked) const { return asked + lateness_; }
  unsigned before_question(unsigned asked) const {
    return asked == 0 && !MRC_BUG(kLatenessDelaysQuestions) ? 0 : asked + lateness_;
  }

  template <typename Which>
  bool any_waits(Which&& which) const {
    for (unsigned i = 0; i < kMost; ++i) {
      if (evs_[i] == kNoEv) continue;
      if (which(Probe{.id = ids_[i], .ev = evs_[i], .sent_at = sent_at_[i]})) return true;
    }
    return false;
  }

  // "I have failed" for a probe of which nothing is known, since its path was abandoned or it was
  // given up as unanswered. It may be an earlier connection's: only a later one is believed, when
  // the stamp in it, so old, left after the first one came. Each that is not believed asks again:
  // held against the one before it, 200 in flight at a distance of 2 us would never end. However
  // long after: where one path is left in each direction, a refusal may get through once in a
  // second (seed 745).
  bool believes_refusal(TimeNs now, DurationNs stamp_age) {
    const bool later = doubted_at_ != kNever && stamp_age <= now - doubted_at_;
    if (doubted_at_ == kNever) doubted_at_ = now;
    return later;
  }

  // Nothing is concluded of the probes on these paths any more.
  template <typename Which>
  void forget(Which&& which) {
    for (EvIndex& ev : evs_) {
      if (ev != kNoEv && which(ev)) ev = kNoEv;
    }
  }

  bool empty() const {
    return std::all_of(evs_.begin(), evs_.end(), [](EvIndex ev) { return ev == kNoEv; });
  }

  // When expire() has something to do at the earliest; kNever when nothing waits.
  TimeNs deadline() const { return look_at_; }

  // Asks `judge` about each probe: it answers with the time at which to ask again, or with `now` to
  // let the probe go unanswered.
  template <typename Judge>
  void expire(TimeNs now, Judge&& judge) {
    if (now < look_at_) return;
    look_at_ = kNever;
    for (unsigned i = 0; i < kMost; ++i) {
      if (evs_[i] == kNoEv) continue;
      const TimeNs again = judge(Probe{.id = ids_[i], .ev = evs_[i], .sent_at = sent_at_[i]});
      if (again > now) {
        look_at_ = std::min(look_at_, again);
      } else {
        evs_[i] = kNoEv;
      }
    }
  }

 private:
  static constexpr unsigned kMost = 8;
  static constexpr std::uint8_t kMostLate = 6;
  static constexpr std::size_t kRemembered = 256;

  // How many were sent after it.
  std::size_t age(std::uint16_t id) const {
    return static_cast<std::uint16_t>(last_id_ - id) & 0x7FFF;
  }
  unsigned place_of(std::uint16_t id) const {
    unsigned place = 0;
    while (place < kMost && (evs_[place] == kNoEv || ids_[place] != id))
      ++place;
    return place;
  }

  std::array<TimeNs, kMost> sent_at_{};
  std::array<std::uint16_t, kMost> ids_{};
  std::array<EvIndex, kMost> evs_;  // kNoEv: free
  TimeNs doubted_at_ = kNever;      // the first refusal that was not believed
  std::uint16_t last_id_ = 0x7FFF;  // the first is 0 with a limit of 0x8000
  std::uint8_t lateness_ = 0;
  std::bitset<kRemembered> answered_;  // by age
  TimeNs look_at_ = kNever;
};

}  // namespace mrc::core
