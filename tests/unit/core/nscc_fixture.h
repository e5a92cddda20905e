// What the NSCC tests share: the reference network and the two signals they send most.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "core/cc/nscc.h"

namespace mrc::core {

inline constexpr std::uint64_t kGigabit = 1'000'000'000;
inline constexpr std::uint32_t kNsccMtu = 4'150;
inline constexpr DurationNs kBaseRtt = 8'337;

// The two-tier 400 Gb/s network of the reference, with switches that trim.
inline CcProfile two_tier() {
  CcProfile profile;
  profile.nscc.base_rtt_ns = kBaseRtt;
  return profile;
}

inline CcEnvironment environment(std::uint64_t gigabits = 400, std::uint32_t peers = 0) {
  return {.bits_per_second = gigabits * kGigabit,
          .mtu_bytes = kNsccMtu,
          .hints = {.remote_recv_peers = peers}};
}

inline NsccGains gains_of(const CcProfile& profile, std::uint64_t gigabits, std::uint32_t mtu,
                          const QpHints& hints = {}) {
  const std::uint64_t bits = gigabits * kGigabit;
  return derive_gains(make_settings(profile, mtu, hints),
                      {.bits_per_second = bits,
                       .full_bits_per_second = bits,
                       .base_rtt_ns = profile.nscc.base_rtt_ns});
}

inline double from_q16(std::uint64_t value) { return static_cast<double>(value) / kOneQ16; }

inline Nscc make_nscc(const CcProfile& profile = two_tier()) {
  return Nscc(profile, environment());
}

// An answer whose round trip was `delay_ns` longer than the base RTT.
inline void ack(Nscc& cc, TimeNs now, DurationNs delay_ns, bool marked = false,
                std::int64_t bytes = kNsccMtu) {
  cc.on_ack(
      {.now = now, .acked_bytes = bytes, .marked = marked, .rtt_ns = cc.base_rtt_ns() + delay_ns});
}

// Takes the bonus of the first answer, then brings the window to an exact size.
inline void settle(Nscc& cc, TimeNs now, std::int64_t window) {
  ack(cc, now, 1'000, true, 0);
  cc.on_loss(now, cc.window_bytes() - window);
  ASSERT_EQ(cc.window_bytes(), window);
}

inline void penalise(Nscc& cc, TimeNs now, std::uint8_t penalty, bool restore = false) {
  cc.on_ack({.now = now,
             .acked_bytes = kNsccMtu,
             .rtt_ns = cc.base_rtt_ns(),
             .window_penalty = penalty,
             .restore_window = restore});
}

inline void send(Nscc& cc, TimeNs now) {
  cc.on_sent(kNsccMtu);
  cc.on_packet_sent(now, kNsccMtu);
}

}  // namespace mrc::core
