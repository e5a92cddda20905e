#include "core/cc/nscc_parameters.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/cc/base_rtt.h"

namespace mrc::core {
namespace {

constexpr float kQ16 = 65536.0F;
constexpr std::uint32_t kMaxFastQ16 = 1U << 31;
constexpr std::uint32_t kMaxGammaQ16 = 16 * kOneQ16;
constexpr std::uint8_t kMaxQaGate = 31;
constexpr std::uint8_t kDefaultQaGate = 3;
constexpr std::uint32_t kDefaultGammaQ16 = 52'429;  // 0.8
constexpr std::uint32_t kDefaultMaxMdJumpQ16 = kOneQ16 / 2;
constexpr std::uint32_t kNoDelayTrigger = std::numeric_limits<std::uint32_t>::max();

// A float parameter in units of 1 / scale. Zero, negative and not-a-number mean "derive"; scale is
// a power of two, so the product is exact.
std::uint32_t to_fixed(float value, float scale, std::uint32_t max) {
  if (!(value > 0)) return 0;
  const float scaled = value * scale;
  if (scaled >= static_cast<float>(max)) return max;
  return std::max(static_cast<std::uint32_t>(scaled), std::uint32_t{1});
}

std::uint32_t clamp_u32(std::int64_t value, std::int64_t low, std::int64_t high) {
  return static_cast<std::uint32_t>(std::clamp(value, low, high));
}

std::uint32_t either(std::uint32_t explicit_value, std::uint32_t derived) {
  return explicit_value != 0 ? explicit_value : derived;
}

// Coarse enough that a window times a bandwidth stays below 2^63.
std::int64_t megabits(std::uint64_t bits_per_second) {
  return static_cast<std::int64_t>(std::min(bits_per_second, kMaxBitsPerSecond) / 1'000'000);
}

// The controller's, for all of its queue pairs.
std::uint32_t rate_of_all(std::uint32_t rate, const QpHints& hints) {
  const std::uint64_t all = std::uint64_t{rate} * std::max(hints.qps_per_peer, 1U);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(all, QpHints::kLineRate));
}

std::uint32_t ceiling_of(const QpHints& hints) {
  return hints.max_rate == 0 ? QpHints::kLineRate : rate_of_all(hints.max_rate, hints);
}

// What a rate is of a window that carries `full`.
std::int64_t share_of(std::int64_t window_bytes, std::uint32_t rate, std::uint32_t full) {
  return window_bytes * std::min(rate, full) / full;
}

// Those with whom we share our port, or our peer's if they are more. Incast is told in queue pairs,
// and a controller has several: of 32 queue pairs, 4 from each, 8 controllers share.
std::uint16_t sharers_of(const QpHints& hints) {
  const std::uint32_t qps = std::max(hints.qps_per_peer, 1U);
  const std::uint32_t at_peer = hints.remote_recv_peers / qps + (hints.remote_recv_peers % qps > 0);
  const std::uint32_t sharers = std::max(at_peer, hints.send_peers);
  return static_cast<std::uint16_t>(std::clamp(sharers, 1U, kMaxSharers));
}

std::uint32_t unlimited_window(const NsccSettings& settings, const NsccNetwork& network) {
  const std::int64_t mtu = settings.mtu_bytes;
  if (settings.max_window_bytes == 0) {
    const std::int64_t bdp = bandwidth_delay_bytes(network.bits_per_second, network.base_rtt_ns);
    return clamp_u32(bdp * 3 / 2, mtu * kMinMaxWindowPackets, kMaxWindowBytes);
  }
  std::int64_t limit = std::min<std::int64_t>(settings.max_window_bytes, kMaxWindowBytes);
  const std::int64_t full = megabits(network.full_bits_per_second);
  const std::int64_t left = megabits(network.bits_per_second);
  if (left < full) limit = limit * left / full;
  return clamp_u32(limit, mtu, kMaxWindowBytes);
}

std::uint32_t max_window(const NsccSettings& settings, const NsccNetwork& network) {
  const std::uint32_t window = unlimited_window(settings, network);
  if (settings.max_rate == 0) return window;
  return clamp_u32(share_of(window, settings.max_rate, QpHints::kLineRate), settings.mtu_bytes,
                   kMaxWindowBytes);
}

}  // namespace

NsccSettings make_settings(const CcProfile& profile, std::uint32_t mtu_bytes,
                           const QpHints& hints) {
  const NsccParameters& api = profile.nscc;
  constexpr auto kMaxBytes = static_cast<std::uint32_t>(kMaxWindowBytes);
  constexpr auto kMaxNs = static_cast<std::uint32_t>(kMaxBaseRttNs);
  const std::int64_t least =
      share_of(kOneQ16, rate_of_all(hints.min_rate, hints), ceiling_of(hints));
  const std::uint16_t sharers = sharers_of(hints);
  // What N requesters add in one round trip meets in one queue. Divided by N the increases would be
  // too weak to make unequal windows equal; with the root of N what all of them add stays small
  // against the window of one, and equal they become.
  const auto root_shift = static_cast<std::uint8_t>((std::bit_width(sharers) - 1) / 2);
  return NsccSettings{
      .mtu_bytes = std::clamp(mtu_bytes, kMinNominalBytes, kMaxNominalBytes),
      .max_rate = rate_of_all(hints.max_rate, hints),
      .adjust_bytes = std::min(api.adjust_bytes_threshold, kMaxBytes),
      .adjust_period_ns = std::min(api.adjust_period_threshold_ns, kMaxNs),
      .target_ns = std::min(api.target_delay_ns, kMaxNs),
      .qa_threshold_ns = api.qa_threshold_ns,
      .max_window_bytes = std::min(api.max_cwnd, kMaxBytes),
      .eta_bytes = to_fixed(api.eta, 1.0F, kMaxBytes),
      .fair_bytes = to_fixed(api.fi, 1.0F, kMaxBytes),
      .fast_q16 = to_fixed(api.fi_scale, kQ16, kMaxFastQ16),
      .gamma_q16 = to_fixed(api.gamma, kQ16, kMaxGammaQ16),
      .max_md_jump_q16 = to_fixed(api.max_md_jump, kQ16, kOneQ16),
      .sharers = sharers,
      .least_q16 = static_cast<std::uint16_t>(std::min<std::int64_t>(least, kOneQ16 - 1)),
      .sharers_root_shift = root_shift,
      .qa_gate = std::min(api.qa_gate, kMaxQaGate),
      .quick_adapt = !api.disable_qa,
      .network_trims = profile.network_trims,
  };
}

std::int64_t bandwidth_delay_bytes(std::uint64_t bits_per_second, DurationNs rtt_ns) {
  // At most 2 * 10^9 kilobytes per second times 2^28 ns: below 2^60.
  const auto bytes_per_ms =
      static_cast<std::int64_t>(std::min(bits_per_second, kMaxBitsPerSecond) / 8'000);
  return std::min(bytes_per_ms * rtt_ns / kMillisecondNs, kMaxWindowBytes);
}

NsccGains derive_gains(const NsccSettings& settings, const NsccNetwork& network) {
  const std::int64_t base_rtt_ns = network.base_rtt_ns;
  const std::int64_t mtu = settings.mtu_bytes;
  const std::int64_t bdp = bandwidth_delay_bytes(network.bits_per_second, base_rtt_ns);
  // "a": how much larger this network is than the reference.
  const std::int64_t size_q16 = bdp * kOneQ16 / kReferenceBdpBytes;

  NsccGains gains;
  gains.max_window_bytes = max_window(settings, network);
  const std::int64_t max_window_bytes = gains.max_window_bytes;
  const std::int64_t target_ns = settings.network_trims ? base_rtt_ns * 3 / 4 : base_rtt_ns;
  gains.target_ns = either(settings.target_ns, clamp_u32(target_ns, 1, kMaxBaseRttNs));
  gains.near_zero_ns =
      clamp_u32(base_rtt_ns * kMicrosecondNs / kReferenceRttNs, kMinBaseRttNs, kMaxBaseRttNs);
  const unsigned root_shift = settings.sharers_root_shift;
  // 4 * MTU * a * b / target with b = target / 12 us: the target cancels.
  gains.alpha_q16 = static_cast<std::uint64_t>(4 * mtu * size_q16 / kReferenceRttNs) >> root_shift;
  const std::uint32_t fair =
      clamp_u32((5 * mtu * size_q16 / kOneQ16) >> root_shift, 1, max_window_bytes);
  gains.fair_bytes = either(settings.fair_bytes, fair);
  const std::uint32_t eta =
      clamp_u32((3 * mtu * size_q16 / (20 * kOneQ16)) >> root_shift, 1, max_window_bytes);
  gains.eta_bytes = either(settings.eta_bytes, eta);
  gains.fast_q16 = either(settings.fast_q16, clamp_u32(size_q16 / 4, 1, kMaxFastQ16));
  gains.gamma_q16 = either(settings.gamma_q16, kDefaultGammaQ16);
  gains.max_md_jump_q16 = either(settings.max_md_jump_q16, kDefaultMaxMdJumpQ16);
  // Where switches trim, a long queue announces itself; delay alone does not trigger quick adapt.
  const std::uint32_t qa_threshold = settings.network_trims ? kNoDelayTrigger : 4 * gains.target_ns;
  gains.qa_threshold_ns = either(settings.qa_threshold_ns, qa_threshold);
  gains.qa_gate_bytes =
      gains.max_window_bytes >> (settings.qa_gate != 0 ? settings.qa_gate : kDefaultQaGate);
  gains.adjust_bytes = either(settings.adjust_bytes, clamp_u32(8 * mtu, 1, kMaxWindowBytes));
  gains.adjust_period_ns =
      either(settings.adjust_period_ns, clamp_u32(base_rtt_ns, 1, kMaxBaseRttNs));
  return gains;
}

// N requesters that open with a full window each would overrun the last hop N times.
std::int64_t first_window_bytes(const NsccSettings& settings, std::int64_t max_window_bytes,
                                const QpHints& hints) {
  const std::uint32_t rate = rate_of_all(hints.initial_rate, hints);
  if (rate != 0) return share_of(max_window_bytes, rate, ceiling_of(hints));
  // 1.2 bandwidth-delay products: what goes out beyond one before the first answer stands in a
  // queue, but answers come in groups and may be a little late. A maximum that was asked for is
  // used.
  const bool derived = settings.max_window_bytes == 0;
  return std::min(max_window_bytes / settings.sharers,
                  derived ? max_window_bytes * 4 / 5 : max_window_bytes);
}

std::int64_t min_window_bytes(const NsccSettings& settings, std::int64_t max_window_bytes) {
  return std::max<std::int64_t>(settings.mtu_bytes, max_window_bytes * settings.least_q16 >> 16);
}

}  // namespace mrc::core
