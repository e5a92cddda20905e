// Which ports take packets in. A port that a controller has turned off takes what is on its way for
// another 100 ms, longer than any round trip of a fabric, so that turning it off loses nothing;
// then it takes nothing, whoever sends. Under the engine lock.
#pragma once

#include <array>

#include "base/types.h"

namespace mrc::nic {

class PortGate {
 public:
  static constexpr DurationNs kGraceNs = 100 * kMillisecondNs;

  // The ports that are on from `now` on.
  void set(PortMask on, TimeNs now) {
    for (unsigned i = 0; i < kMaxPorts; ++i) {
      const auto port = static_cast<PortId>(i + 1);
      if (on.contains(port)) {
        closes_at_[i] = kNever;
      } else if (closes_at_[i] == kNever) {
        closes_at_[i] = now + kGraceNs;
      }
    }
  }

  bool takes(PortId port, TimeNs now) const {
    const auto index = static_cast<std::size_t>(port) - 1;
    return index >= kMaxPorts || now < closes_at_[index];
  }

 private:
  std::array<TimeNs, kMaxPorts> closes_at_ = [] {
    std::array<TimeNs, kMaxPorts> never{};
    never.fill(kNever);
    return never;
  }();
};

}  // namespace mrc::nic
