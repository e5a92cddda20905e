// From the API's parameters to the numbers NSCC calculates with.
//
// Everything is an integer: fractions are fixed point with 16 fractional bits (suffix _q16), so
// that every compiler and machine takes the same decisions. Floats are converted once, in
// make_settings.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "core/config.h"

namespace mrc::core {

// Bounds that keep every product of the packet path below 2^63.
inline constexpr std::int64_t kMaxWindowBytes = (std::int64_t{1} << 31) - 1;
inline constexpr std::uint64_t kMaxBitsPerSecond = 16'000'000'000'000;
inline constexpr std::uint32_t kMinNominalBytes = 64;
inline constexpr std::uint32_t kMaxNominalBytes = 16'384;

// The network the algorithm's constants were chosen for.
inline constexpr std::int64_t kReferenceRttNs = 12'000;
inline constexpr std::int64_t kReferenceBdpBytes = 150'000;  // at 100 Gb/s

// The derived window limit is at least this many packets, so that a short path at a low rate can
// still keep a packet on the wire while others are being answered.
inline constexpr std::int64_t kMinMaxWindowPackets = 4;

inline constexpr std::uint32_t kMaxSharers = 4'096;

inline constexpr std::uint32_t kOneQ16 = 1U << 16;

// What the profile says explicitly; 0 = derive.
struct NsccSettings {
  std::uint32_t mtu_bytes = 0;
  std::uint32_t max_rate = 0;  // in parts of QpHints::kLineRate
  std::uint32_t adjust_bytes = 0;
  std::uint32_t adjust_period_ns = 0;
  std::uint32_t target_ns = 0;
  std::uint32_t qa_threshold_ns = 0;
  std::uint32_t max_window_bytes = 0;
  std::uint32_t eta_bytes = 0;
  std::uint32_t fair_bytes = 0;
  std::uint32_t fast_q16 = 0;
  std::uint32_t gamma_q16 = 0;
  std::uint32_t max_md_jump_q16 = 0;
  std::uint16_t sharers = 1;            // controllers that share the narrower end of the path
  std::uint16_t least_q16 = 0;          // the smallest window, as a part of the largest
  std::uint8_t sharers_root_shift = 0;  // steps are divided by about the root of `sharers`
  std::uint8_t qa_gate = 0;
  bool quick_adapt = true;
  bool network_trims = true;
};

NsccSettings make_settings(const CcProfile& profile, std::uint32_t mtu_bytes, const QpHints& hints);

// What the packet path uses; a pure function of settings, bandwidth and base RTT.
struct NsccGains {
  std::uint64_t alpha_q16 = 0;  // proportional increase, bytes per window and ns below target
  std::uint32_t max_window_bytes = 0;
  std::uint32_t target_ns = 0;     // queueing delay aimed at
  std::uint32_t near_zero_ns = 0;  // a delay up to this counts as none (fast increase)
  std::uint32_t fair_bytes = 0;    // fair increase, bytes per window
  std::uint32_t eta_bytes = 0;     // unconditional increase per adjust period
  std::uint32_t fast_q16 = 0;      // fast increase, window bytes per acknowledged byte
  std::uint32_t gamma_q16 = 0;
  std::uint32_t max_md_jump_q16 = 0;  // a decrease leaves at least this part of the window
  std::uint32_t qa_threshold_ns = 0;
  std::uint32_t qa_gate_bytes = 0;  // quick adapt only when less than this was achieved
  std::uint32_t adjust_bytes = 0;
  std::uint32_t adjust_period_ns = 0;
};

// `full_bits_per_second` is the bandwidth an explicit maximum window was meant for; with planes
// missing that maximum shrinks in proportion.
struct NsccNetwork {
  std::uint64_t bits_per_second = 0;
  std::uint64_t full_bits_per_second = 0;
  DurationNs base_rtt_ns = 0;
};

std::int64_t bandwidth_delay_bytes(std::uint64_t bits_per_second, DurationNs rtt_ns);
NsccGains derive_gains(const NsccSettings& settings, const NsccNetwork& network);
// The windows to begin with, and to stay above.
std::int64_t first_window_bytes(const NsccSettings& settings, std::int64_t max_window_bytes,
                                const QpHints& hints);
std::int64_t min_window_bytes(const NsccSettings& settings, std::int64_t max_window_bytes);

}  // namespace mrc::core
