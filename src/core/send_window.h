// The requester's record of every packet between the oldest unacknowledged one and the newest sent.
//
// Sequence numbers here are 64 bits and never wrap; a PSN is their low 24 bits. A packet is in
// flight, queued to be sent again, or acknowledged. Packets in flight are
// linked twice, in the order of their last transmission: over all paths, which is what time-based
// loss detection walks, and per EV, because each EV is one FIFO path and what was overtaken there
// cannot still be on its way. Only packets of the first two kinds have a record, so the window may
// be much longer than the number of records; an acknowledged packet is one bit. With a record for
// every place in the window there is nothing to look up. The lists name packets by their place,
// since that tells the sequence number.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bit_window.h"
#include "base/fixed_array.h"
#include "base/types.h"

namespace mrc::core {

using Sequence = std::uint64_t;

// The first sequence number of a stream that starts at `psn`. One turn of the PSN circle is added
// so that numbers slightly before the first are still valid.
constexpr Sequence first_sequence(Psn psn) { return Sequence{psn.value()} + (Psn::kMask + 1); }
constexpr Psn psn_of(Sequence seq) { return Psn(static_cast<std::uint32_t>(seq & Psn::kMask)); }
// The sequence number nearest to `reference` that has this PSN.
constexpr Sequence sequence_near(Sequence reference, Psn psn) {
  return reference + static_cast<Sequence>(std::int64_t{psn.distance_from(psn_of(reference))});
}

// Why a packet is to be sent again. Only some of them mean that it was lost.
enum class ResendReason : std::uint8_t {
  kPathOrder,      // one sent later on its path has arrived
  kTime,           // others sent well after it have arrived
  kSilence,        // nothing was said of it for long
  kUnanswered,     // nothing at all came back, and this one asks
  kTimeout,        // the retry interval is over
  kTrimmed,        // NACK: a switch kept its headers only
  kNotTaken,       // NACK: the peer had no room for it
  kNotReady,       // NACK: the peer has no receive for it yet, or no memory
  kAccessRefused,  // NAK: once more, and when that is refused never again
  kLate,           // on its way, but everything waits for it
};
inline constexpr unsigned kResendReasons = 10;

enum class PacketState : std::uint8_t { kUnused, kInFlight, kToResend, kAcknowledged };

// What is known of a packet.
struct PacketRecord {
  TimeNs sent_at = 0;  // last transmission
  std::uint32_t nominal_bytes = 0;
  bool counted = true;  // in the bytes in flight
  EvIndex ev = kNoEv;   // of the last transmission
  PacketState state = PacketState::kUnused;
  // 1; 2: the other one went along another path; kSeveralTransmissions: any.
  std::uint8_t transmissions = 0;
  ResendReason reason = ResendReason::kPathOrder;  // why it was last queued to be sent again
};
inline constexpr unsigned kSeveralTransmissions = 3;

class SendWindow {
 public:
  SendWindow() = default;
  // A window of `packets` sequence numbers over `evs` paths, of which at most `outstanding` are in
  // flight or queued at a time; 0 = all. Sending starts at `first`.
  SendWindow(std::uint32_t packets, unsigned evs, Sequence first, std::uint32_t outstanding = 0);

  Sequence oldest() const { return oldest_; }  // everything before is acknowledged
  Sequence next() const { return next_; }      // the next new packet
  bool contains(Sequence seq) const { return seq >= oldest_ && seq < next_; }
  // Of an acknowledged packet nothing is known but that.
  PacketRecord record(Sequence seq) const {
    const std::uint32_t at = record_number(slot(seq));
    if (at == RecordIndex::kNone) return {.state = PacketState::kAcknowledged};
    const Stored& r = records_[at];
    if (r.state == PacketState::kUnused) return {.state = PacketState::kAcknowledged};
    return {.sent_at = sent_at(r),
            .nominal_bytes = r.nominal_bytes,
            .counted = r.counted != 0,
            .ev = EvIndex{r.ev},
            .state = r.state,
            .transmissions = static_cast<std::uint8_t>(r.transmissions),
            .reason = r.reason};
  }
  // How many more packets there is a record for.
  std::uint32_t free_records() const {
    return static_cast<std::uint32_t>(records_.size()) - in_flight_ - to_resend_;
  }
  std::uint32_t in_flight() const { return in_flight_; }
  std::uint32_t to_resend() const { return to_resend_; }
  std::int64_t in_flight_bytes() const { return in_flight_bytes_; }

  // A new packet leaves: it becomes next() and is in flight. Needs a free record.
  void append(TimeNs now, EvIndex ev, std::uint32_t nominal_bytes);
  // A queued packet leaves again. `told_apart`: an answer tells by its entropy which of the two
  // last copies it is about.
  void resend(Sequence seq, TimeNs now, EvIndex ev, std::uint32_t nominal_bytes, bool told_apart);
  // What is in flight no longer counts in the bytes in flight; returns how many they were.
  std::int64_t uncount_bytes();
  // In flight or queued -> acknowledged. The caller moves the edge with advance_to.
  void acknowledge(Sequence seq);
  // In flight -> queued to be sent again.
  void queue_resend(Sequence seq, ResendReason reason);
  // Everything before `seq` is acknowledged; forgets it.
  void advance_to(Sequence seq);
  // Marks what was sent before `seq` on the same EV as overtaken.
  void overtake_before(Sequence seq);
  // Marks what was sent on `ev` at or before `latest` as overtaken (a probe on that EV was
  // answered).
  void overtake_until(EvIndex ev, TimeNs latest);

  // Something sent on `ev` has arrived, as we hear now; and how long ago that was the last time.
  void note_life(EvIndex ev, TimeNs now) { path(ev).life_ticks = life_ticks(now); }
  DurationNs since_life(EvIndex ev, TimeNs now) const {
    const std::uint32_t ticks = life_ticks(now) - path(ev).life_ticks;
    return DurationNs{ticks} << kLifeTickShift;
  }

  // The oldest packet to be sent again in [oldest, end); `end` when none.
  Sequence first_to_resend(Sequence end) const;
  // Acknowledged and overtaken packets as bits from `seq` on.
  std::uint64_t acknowledged_bits(Sequence seq) const {
    return bits_.bits64(seq, kAcknowledgedLane);
  }
  std::uint64_t overtaken_bits(Sequence seq) const { return bits_.bits64(seq, kOvertakenLane); }
  bool overtaken(Sequence seq) const { return bits_.test(seq, kOvertakenLane); }

  // The walk over packets in flight, earliest transmission first. kEnd ends it.
  static constexpr Sequence kEnd = ~Sequence{0};
  Sequence earliest_sent() const { return sequence_of(order_.head); }
  Sequence sent_after(Sequence seq) const { return sequence_of(open_record(seq).newer); }

  std::size_t memory_bytes() const;

 private:
  static constexpr std::uint16_t kNil = 0xFFFF;
  enum Lane : unsigned { kAcknowledgedLane, kResendLane, kOvertakenLane, kLanes };
  // Which record belongs to each place in the window: a byte for each where that is enough.
  class RecordIndex {
   public:
    static constexpr std::uint32_t kNone = 0xFFFF'FFFF;

    RecordIndex() = default;
    RecordIndex(std::size_t places, std::size_t records)
        : wide_(records >= kNoByte), bytes_(wide_ ? 2 * places : places, kNoByte) {}

    std::uint32_t at(std::uint16_t place) const {
      if (!wide_) return bytes_[place] == kNoByte ? kNone : bytes_[place];
      const std::size_t first = std::size_t{place} * 2;
      const std::uint32_t record = bytes_[first] | std::uint32_t{bytes_[first + 1]} << 8;
      return record == kNil ? kNone : record;
    }
    void set(std::uint16_t place, std::uint32_t record) {
      if (!wide_) {
        bytes_[place] = static_cast<std::uint8_t>(record);
        return;
      }
      const std::size_t first = std::size_t{place} * 2;
      bytes_[first] = static_cast<std::uint8_t>(record);
      bytes_[first + 1] = static_cast<std::uint8_t>(record >> 8);
    }
    bool empty() const { return bytes_.empty(); }
    std::size_t memory_bytes() const { return bytes_.memory_bytes(); }

   private:
    static constexpr std::uint8_t kNoByte = 0xFF;

    bool wide_ = false;
    FixedArray<std::uint8_t> bytes_;
  };
  // There is one for each packet that may be out, in each queue pair: every byte counts. Of the
  // time of transmission the low bits are kept; the rest is that of last_sent_, since nothing is
  // out for as long as they take to wrap, which is 19 hours.
  struct Stored {
    std::uint32_t sent_low = 0;
    std::uint16_t sent_high : 14 = 0;
    std::uint16_t transmissions : 2 = 0;
    std::uint16_t nominal_bytes : 14 = 0;
    PacketState state : 2 = PacketState::kUnused;
    std::uint16_t ev : 11 = 0;
    std::uint16_t counted : 1 = 1;
    ResendReason reason : 4 = ResendReason::kPathOrder;
    std::uint16_t older = 0;  // neighbours in the order of transmission
    std::uint16_t newer = 0;
    std::uint16_t ev_newer = 0;  // the next on the same EV; the one before it: ev_older_
  };
  static_assert(sizeof(Stored) == 16 && kMaxEvsPerQp <= 1U << 11);
  static constexpr unsigned kSentBits = 32 + 14;
  static constexpr std::uint32_t kMaxNominalBytes = 0x3FFF;
  struct List {  // of places in the window
    std::uint16_t head = kNil;
    std::uint16_t tail = kNil;
  };
  struct PathList : List {
    std::uint32_t life_ticks = 0;  // when something sent on it was last known to have arrived
  };
  static constexpr unsigned kLifeTickShift = 6;  // 64 ns; the clock wraps after more than 4 minutes

  static std::uint32_t life_ticks(TimeNs now) {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(now) >> kLifeTickShift);
  }
  PathList& path(EvIndex ev) { return ev_lists_[static_cast<std::size_t>(ev)]; }
  const PathList& path(EvIndex ev) const { return ev_lists_[static_cast<std::size_t>(ev)]; }
  std::uint16_t slot(Sequence seq) const { return static_cast<std::uint16_t>(seq & mask_); }
  std::uint32_t record_number(std::uint16_t place) const {
    return index_.empty() ? place : index_.at(place);
  }
  Stored& record_at(std::uint16_t place) { return records_[record_number(place)]; }
  const Stored& record_at(std::uint16_t place) const { return records_[record_number(place)]; }
  Stored& open_record(Sequence seq) { return record_at(slot(seq)); }
  const Stored& open_record(Sequence seq) const { return record_at(slot(seq)); }
  TimeNs sent_at(const Stored& r) const {
    const std::uint64_t low = std::uint64_t{r.sent_high} << 32 | r.sent_low;
    const std::uint64_t age = static_cast<std::uint64_t>(last_sent_) - low;
    return last_sent_ - static_cast<TimeNs>(age & ((std::uint64_t{1} << kSentBits) - 1));
  }
  void stamp(Stored& r, TimeNs now) {
    last_sent_ = now;
    r.sent_low = static_cast<std::uint32_t>(now);
    r.sent_high = static_cast<std::uint64_t>(now) >> 32 & 0x3FFF;
  }
  Sequence sequence_of(std::uint16_t place) const;
  // `packet` is the record at `place`, looked up once by the caller.
  void link(std::uint16_t place, Stored& packet);
  void unlink(Sequence seq, const Stored& packet);
  std::uint32_t take_record(std::uint16_t place);
  void release(std::uint16_t place, Stored& packet);

  FixedArray<Stored> records_;  // in no order; the free ones are linked by `newer`
  // The one before each record on its EV. Not in Stored, which its two bytes would make four
  // longer.
  FixedArray<std::uint16_t> ev_older_;
  RecordIndex index_;          // empty when there is a record for every place
  std::uint16_t free_ = kNil;  // a record; not used without the index
  FixedArray<PathList> ev_lists_;
  List order_;
  BitWindow<kLanes> bits_;
  std::uint64_t mask_ = 0;
  Sequence oldest_ = 0;
  Sequence next_ = 0;
  TimeNs last_sent_ = 0;
  std::int64_t in_flight_bytes_ = 0;
  std::uint32_t in_flight_ = 0;
  std::uint32_t to_resend_ = 0;
};

}  // namespace mrc::core
