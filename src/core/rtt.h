// Round-trip estimates of one queue pair, and the 16-bit clock readings that packets carry.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.h"

namespace mrc::core {

// TSETH ticks with tsr = 0.
inline constexpr DurationNs kTickNs = 128;
constexpr std::uint16_t ticks_at(TimeNs time) {
  return static_cast<std::uint16_t>(static_cast<std::uint64_t>(time) / kTickNs);
}

class RttEstimator {
 public:
  // `initial` stands in until the first sample.
  explicit RttEstimator(DurationNs initial = 12 * kMicrosecondNs)
      : smoothed_(initial), variation_(initial / 2), minimum_(initial) {}

  void add(DurationNs sample) {
    if (!has_sample_) {
      smoothed_ = sample;
      variation_ = sample / 2;
      minimum_ = sample;
      has_sample_ = true;
      return;
    }
    const DurationNs error = sample > smoothed_ ? sample - smoothed_ : smoothed_ - sample;
    variation_ += (error - variation_) / 4;
    smoothed_ += (sample - smoothed_) / 8;
    minimum_ = std::min(minimum_, sample);
  }

  bool has_sample() const { return has_sample_; }
  DurationNs smoothed() const { return smoothed_; }
  DurationNs variation() const { return variation_; }
  DurationNs minimum() const { return minimum_; }

 private:
  DurationNs smoothed_;
  DurationNs variation_;
  DurationNs minimum_;
  bool has_sample_ = false;
};

}  // namespace mrc::core
