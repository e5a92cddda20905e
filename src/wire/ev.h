// Entropy values: how a controller describes a path and how that becomes bits in a packet.
//
// A format lists the widths of the fields in the packet, a profile says of each field which bits
// are fixed and which come from the compact EV. Both forms of an EV are bit strings of up to 256
// bits that begin at the top bit of byte 0; what is not used is zero.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "base/result.h"
#include "wire/ip_address.h"

namespace mrc::wire {

inline constexpr std::size_t kEvBytes = 32;

struct EvValue {
  std::array<std::uint8_t, kEvBytes> bytes{};
  friend bool operator==(const EvValue&, const EvValue&) = default;
};

// Where the expanded EV goes: UDP source port (16 bits), source port and flow label (32 bits), or
// carrier address and one routing-header segment (128 and 256 bits).
enum class EvKind : std::uint8_t { kUdpPort, kStructured, kSrv6, kSrv6Segment };
[[nodiscard]] unsigned ev_width_bits(EvKind kind);

// The fields in the packet, each 1..255 bits wide. A view: the caller keeps the widths.
struct EvFormat {
  EvKind kind = EvKind::kStructured;
  std::span<const std::uint8_t> widths;
};

// One field of a profile; the names are those of the C API. The bits under `mask` come from the
// compact EV, the others from `init_val`. With a mask, min_val = max_val = 0 means no limits.
struct EvField {
  std::uint32_t width = 0;
  std::uint32_t init_val = 0;
  std::uint32_t min_val = 0;
  std::uint32_t max_val = 0;
  std::uint32_t mask = 0;
  friend bool operator==(const EvField&, const EvField&) = default;
};

// kInvalidArgument: an empty format or a field of no width. kTooLong: wider than the kind can
// carry.
[[nodiscard]] Status check_ev_format(const EvFormat& format);

// kTooLong: more or wider fields than the format has. kInvalidArgument: a value, limit or mask that
// contradicts its field. Expects a format that passed its own check.
[[nodiscard]] Status check_ev_profile(const EvFormat& format, std::span<const EvField> fields);

// Bits the compact EVs of this profile have.
[[nodiscard]] unsigned compact_ev_bits(std::span<const EvField> fields);

// Compact to expanded form. Refuses a compact EV with bits set behind those the profile uses.
// Format and profile must have passed their checks.
[[nodiscard]] Result<EvValue> expand_ev(const EvFormat& format, std::span<const EvField> fields,
                                        const EvValue& compact);

// The inverse. Refuses an expanded EV whose fixed bits are not those of the profile.
[[nodiscard]] Result<EvValue> compact_ev(const EvFormat& format, std::span<const EvField> fields,
                                         const EvValue& expanded);

// The limits within which the bits under the mask of a field are drawn.
struct EvLimits {
  std::uint32_t min = 0;
  std::uint32_t max = 0;
};
[[nodiscard]] EvLimits ev_limits(const EvField& field);

// Writes the low `width` bits of `value` at bit `at` of `ev`, top bit first. Bits there must be
// zero.
void put_ev_bits(EvValue& ev, unsigned at, unsigned width, std::uint32_t value);

// Draws one compact EV. `random()` yields 64 evenly distributed bits a call; it is called once for
// each field that has a mask, in order.
template <typename Random>
[[nodiscard]] EvValue generate_ev(std::span<const EvField> fields, Random&& random) {
  EvValue compact;
  unsigned at = 0;
  for (const EvField& field : fields) {
    if (field.mask == 0) continue;
    const EvLimits limits = ev_limits(field);
    const std::uint64_t choices = std::uint64_t{limits.max} - limits.min + 1;
    const std::uint64_t high = std::uint64_t{random()} >> 32;
    const auto width = static_cast<unsigned>(__builtin_popcount(field.mask));
    put_ev_bits(compact, at, width, limits.min + static_cast<std::uint32_t>(high * choices >> 32));
    at += width;
  }
  return compact;
}

// Below: what an expanded EV means.

// The 32 bits a packet carries (see FrameHeader::entropy): the first four bytes of a structured EV;
// the first two of a UDP-port EV, in the low half.
[[nodiscard]] std::uint32_t ev_entropy(EvKind kind, const EvValue& expanded);
[[nodiscard]] EvValue structured_ev(std::uint32_t entropy);

// Carrier address and routing-header segment of an SRv6 EV. A segment of all zeros means none.
[[nodiscard]] IpAddress ev_carrier(const EvValue& expanded);
[[nodiscard]] IpAddress ev_segment(const EvValue& expanded);
[[nodiscard]] EvValue srv6_ev(const IpAddress& carrier, const IpAddress& segment);

}  // namespace mrc::wire
