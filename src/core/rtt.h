// Round-trip estimates of one queue pair, and the 16-bit clock readings that packets carry.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/planted_bug.h"
#include "base/types.h"

namespace mrc::core {

// TSETH ticks with tsr = 0.
inline constexpr DurationNs kTickNs = 128;
constexpr std::uint16_t ticks_at(TimeNs time) {
  return static_cast<std::uint16_t>(static_cast<std::uint64_t>(time) / kTickNs);
}

// The round trip of something sent at `sent_at` whose stamp came back as `reflected`: the stamp is
// the one we sent plus the responder's residence time. 0 when it does not fit between the
// transmission and now, and so belongs to another transmission or to nobody. One that fits may
// still belong to an earlier transmission whose answer waited at the peer. Never less than a tick:
// both stamps are cut to ticks, and from an estimate of 1 ns limits of eight times as much would
// not lead away again.
constexpr DurationNs round_trip(TimeNs now, TimeNs sent_at, std::uint16_t reflected) {
  const DurationNs elapsed = now - sent_at;
  const auto service_ticks = static_cast<std::uint16_t>(reflected - ticks_at(sent_at));
  const DurationNs service = service_ticks * kTickNs;
  if (elapsed <= 0 || service >= elapsed + kTickNs) return 0;
  return std::max(elapsed - service, kTickNs);
}

// How old a stamp is that came back, the peer's residence time left out: its round trip, unless
// that is longer than the 8.4 ms in which the clock of the stamps turns round.
constexpr DurationNs stamp_age(TimeNs now, std::uint16_t reflected) {
  return static_cast<std::uint16_t>(ticks_at(now) - reflected) * kTickNs;
}

// Answers that come far too late say little about the next ones: many may have waited for the same
// thing. Together they are one sample, of limited weight; what was sent after that is believed. If
// the very first answer is late, it is none: either the peer paused, or everything takes longer
// than was expected, and what is sent next shows which. After 3 ms (a pause), 69 us and 5 ms (a
// pause again) the retry interval is 0.9 ms, not 8.4 ms (seed 1688849870458043). A first answer
// that is late and yet believed stands until one comes in less than an eighth of the estimate,
// which for 16 flights begins the estimate anew: with 3 ms, 299 us, 126 us and 78 us the retry
// interval was 12.5 ms and is 1.2 ms now (seed 10819592). What was on its way with it may have
// waited for the same thing, so of these the fastest counts: after 247 us, 139 us and 49 us, all
// answered at once, and a pause of 1.5 ms the interval was 4.8 ms and is 0.6 ms (seed 462).
//
// The retry timer goes by the slowest answer of each flight, once, as RFC 6298 has one sample in a
// round trip for TCP. 34 packets that were sent at once and stood in one queue for 0.5 to 7.6 ms
// say the same thing 34 times: with all of them its interval was 25 ms, when the queue was long
// gone and the peer too; it is 9 ms now (seed 2533274801386955). The slowest, since the first is
// always one of the fastest path: with paths of 50 and 400 us an interval of 150 us would give up
// on the second.
class RttEstimator {
 public:
  // `initial` stands in until the first sample.
  explicit RttEstimator(DurationNs initial = 12 * kMicrosecondNs)
      : all_(initial), flights_(initial), minimum_(initial) {}

  // The round trip of something that was sent at `sent_at` and answered now.
  void add(TimeNs now, TimeNs sent_at, DurationNs sample) {
    const DurationNs most = (has_sample_ ? kMostTimesLonger : kMostTimesExpected) * all_.smoothed;
    if (sent_at < held_up_at_ && sample > all_.smoothed && !MRC_BUG(kHeldUpAnswersAllCount)) return;
    const bool too_late = sample > most;
    if (too_late) {
      held_up_at_ = now;
      sample = most;
    }
    if (!has_sample_) {
      const bool stays = MRC_BUG(kLateFirstAnswerStays);
      doubted_at_ = sample > kMostTimesLonger * all_.smoothed && !stays ? now : 0;
      if (!too_late || was_late_ || stays) return start(now, sample);
      was_late_ = true;
      return;
    }
    if (sent_at < doubted_at_ && sample < all_.smoothed && !MRC_BUG(kFirstFlightIsAveraged))
      return start(now, sample);
    const bool in_doubt = doubted_at_ != 0 && !MRC_BUG(kSlowFirstAnswerStays);
    if (in_doubt && sample < all_.smoothed / kMostTimesLonger) {
      doubted_at_ = 0;
      return start(now, sample);
    }
    all_.add(sample);
    minimum_ = std::min(minimum_, sample);
    const bool same_flight = sent_at < flight_answered_at_ && !MRC_BUG(kEveryAnswerPaces);
    slowest_ = same_flight ? std::max(slowest_, sample) : begin_flight(now, sample);
  }

  // The answer to a copy that was sent before the last one: it took as long as its stamp is old, or
  // longer by turns of the clock of the stamps. Where every answer takes longer than the retry
  // interval there are no others: with answers in 20 us and then in 5 ms each packet was sent
  // eleven times, for ever.
  void add_at_least(TimeNs now, DurationNs stamp_age) {
    if (stamp_age > all_.smoothed) add(now, now - stamp_age, stamp_age);
  }

  bool has_sample() const { return has_sample_; }
  DurationNs smoothed() const { return all_.smoothed; }
  DurationNs variation() const { return all_.variation; }
  // What the retry timer allows an answer to take.
  DurationNs patience() const {
    Average with_this_flight = flights_;
    if (slowest_ != 0) with_this_flight.add(slowest_);
    return 2 * with_this_flight.smoothed + 4 * with_this_flight.variation;
  }
  // All that is known are answers to one flight, and these took far longer than was expected.
  bool in_doubt() const { return doubted_at_ != 0; }
  DurationNs minimum() const { return minimum_; }
  // When the last answer came that was far too late; what was sent before may have waited too.
  TimeNs held_up_at() const { return held_up_at_; }

 private:
  static constexpr DurationNs kMostTimesLonger = 8;
  static constexpr DurationNs kMostTimesExpected = 64;  // what was expected is only a guess
  static constexpr std::uint8_t kFlightsOfDoubt = 16;

  struct Average {
    DurationNs smoothed;
    DurationNs variation;

    explicit Average(DurationNs first) : smoothed(first), variation(first / 2) {}
    void add(DurationNs sample) {
      const DurationNs error = sample > smoothed ? sample - smoothed : smoothed - sample;
      variation += (error - variation) / 4;
      smoothed += (sample - smoothed) / 8;
    }
  };

  void start(TimeNs now, DurationNs sample) {
    all_ = flights_ = Average(sample);
    minimum_ = sample;
    slowest_ = 0;
    flight_answered_at_ = now;
    has_sample_ = true;
  }
  // What was sent from now on belongs to the next one. Nothing doubts a first answer for ever.
  DurationNs begin_flight(TimeNs now, DurationNs sample) {
    if (slowest_ != 0) flights_.add(slowest_);
    flight_answered_at_ = now;
    if (++flights_since_start_ >= kFlightsOfDoubt) doubted_at_ = 0;
    flights_since_start_ = std::min(flights_since_start_, kFlightsOfDoubt);
    return sample;
  }

  Average all_;
  Average flights_;         // the slowest answer of each, but for the one that is being answered
  DurationNs slowest_ = 0;  // of that one
  DurationNs minimum_;
  TimeNs flight_answered_at_ = 0;
  TimeNs held_up_at_ = 0;
  TimeNs doubted_at_ = 0;  // when the first sample came, if it took far longer than was expected
  bool has_sample_ = false;
  bool was_late_ = false;  // an answer before the first sample
  std::uint8_t flights_since_start_ = 0;
};

}  // namespace mrc::core
