// What peers are asked for while they send more than the kernel can keep for us.
//
// The sign is that the kernel dropped packets of ours (SO_RXQ_OVFL). Windows are halved then, at
// most once in 10 ms, and every answer carries a penalty: half of what is acknowledged leaves the
// sender's congestion window. After 50 ms without a drop the penalty ends and senders may have
// their old window back; the range of PSNs doubles each 50 ms.
//
//   halved (penalty) --50 ms quiet--> restoring, windows double --all back, 50 ms--> nothing
//
// Pure; under the engine lock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.h"
#include "core/config.h"

namespace mrc::nic {

class ReceivePressure {
 public:
  static constexpr DurationNs kStepNs = 10 * kMillisecondNs;
  static constexpr DurationNs kQuietNs = 50 * kMillisecondNs;
  static constexpr unsigned kMostHalvings = 5;
  static constexpr std::uint8_t kPenalty = 64;  // of 128

  // `dropped`: by the kernel, so far. True when what is asked of peers changed.
  bool update(TimeNs now, std::uint64_t dropped) {
    if (dropped == dropped_ && !any()) return false;
    const Wishes before = wishes_;
    if (dropped != dropped_) {
      dropped_ = dropped;
      tighten(now);
    } else if (now >= quiet_at_) {
      relax(now);
    }
    return wishes_ != before;
  }

  // The range to track, of the one that was agreed.
  std::uint8_t window_units(std::uint8_t agreed) const {
    return static_cast<std::uint8_t>(std::max(agreed >> wishes_.halvings, 1));
  }
  const core::ReceiverPenalty& penalty() const { return wishes_.penalty; }

 private:
  struct Wishes {
    unsigned halvings = 0;
    core::ReceiverPenalty penalty;
    bool operator==(const Wishes&) const = default;
  };

  bool any() const { return wishes_ != Wishes{}; }

  void tighten(TimeNs now) {
    if (now >= step_at_) {
      wishes_.halvings = std::min(wishes_.halvings + 1, kMostHalvings);
      step_at_ = now + kStepNs;
    }
    wishes_.penalty = {.value = kPenalty};
    quiet_at_ = now + kQuietNs;
  }

  // Rounds may be far apart: a step for each time that was quiet.
  void relax(TimeNs now) {
    const bool all_back = wishes_.halvings == 0;
    const auto steps = static_cast<unsigned>(
        std::min<DurationNs>(1 + (now - quiet_at_) / kQuietNs, kMostHalvings));
    wishes_.halvings -= std::min(steps, wishes_.halvings);
    wishes_.penalty = {.restore = !all_back};
    quiet_at_ = now + kQuietNs;
  }

  std::uint64_t dropped_ = 0;
  Wishes wishes_;
  TimeNs step_at_ = 0;
  TimeNs quiet_at_ = 0;
};

}  // namespace mrc::nic
