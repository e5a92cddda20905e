// No congestion control: the window never limits and nothing is paced. Bytes in flight and the base
// RTT are still kept, because loss detection and probing need them.
#pragma once

#include <cstdint>

#include "core/cc/base_rtt.h"
#include "core/cc/congestion.h"

namespace mrc::core {

// Far above anything in flight, and far enough from the limit that callers may add to it.
inline constexpr std::int64_t kUnlimitedWindowBytes = std::int64_t{1} << 62;

class NoCongestionControl final : public CongestionController {
 public:
  explicit NoCongestionControl(DurationNs base_rtt_ns) : base_rtt_(base_rtt_ns) {}

  void on_packet_sent(TimeNs now, std::int64_t bytes) override;
  void on_ack(const AckSample& sample) override;
  void on_trim(TimeNs now, std::int64_t bytes, bool last_hop) override;
  void on_loss(TimeNs now, std::int64_t bytes) override;
  void set_bandwidth(std::uint64_t bits_per_second) override;

  std::int64_t window_bytes() const override { return kUnlimitedWindowBytes; }
  DurationNs base_rtt_ns() const override { return base_rtt_.value_ns(); }

 private:
  BaseRtt base_rtt_;
};

}  // namespace mrc::core
