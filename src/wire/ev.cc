#include "wire/ev.h"

#include <bit>

namespace mrc::wire {
namespace {

constexpr unsigned kWordBits = 32;

constexpr std::uint32_t low_bits(unsigned count) {
  return count >= kWordBits ? 0xFFFF'FFFF : (std::uint32_t{1} << count) - 1;
}

bool ev_bit(const EvValue& ev, unsigned at) { return (ev.bytes[at / 8] >> (7 - at % 8) & 1) != 0; }

std::uint32_t ev_bits(const EvValue& ev, unsigned at, unsigned width) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < width; ++i) {
    value = value << 1 | (ev_bit(ev, at + i) ? 1 : 0);
  }
  return value;
}

bool all_zero(const EvValue& ev, unsigned from, unsigned to) {
  for (unsigned at = from; at < to; ++at) {
    if (ev_bit(ev, at)) return false;
  }
  return true;
}

// Spreads the low bits of `bits` over the set bits of `mask`, keeping their order.
std::uint32_t scatter(std::uint32_t bits, std::uint32_t mask) {
  std::uint32_t result = 0;
  for (; mask != 0; mask &= mask - 1, bits >>= 1) {
    if ((bits & 1) != 0) result |= mask & (~mask + 1);
  }
  return result;
}

// The inverse: the bits under `mask`, moved together.
std::uint32_t gather(std::uint32_t value, std::uint32_t mask) {
  std::uint32_t result = 0;
  for (unsigned at = 0; mask != 0; mask &= mask - 1, ++at) {
    if ((value & mask & (~mask + 1)) != 0) result |= std::uint32_t{1} << at;
  }
  return result;
}

Status check_field(const EvField& field, unsigned format_width) {
  using enum ErrorCode;
  if (field.width == 0) return {kInvalidArgument, "an EV field has no width"};
  if (field.width > kWordBits) return {kTooLong, "an EV field is wider than 32 bits"};
  if (field.width > format_width) return {kTooLong, "an EV field is wider than its format field"};
  if ((field.init_val & ~low_bits(field.width)) != 0) {
    return {kInvalidArgument, "the initial value of an EV field does not fit its width"};
  }
  if ((field.mask & ~low_bits(field.width)) != 0) {
    return {kInvalidArgument, "the mask of an EV field does not fit its width"};
  }
  if (field.min_val > field.max_val) {
    return {kInvalidArgument, "the minimum of an EV field is above its maximum"};
  }
  if (field.max_val > low_bits(static_cast<unsigned>(std::popcount(field.mask)))) {
    return {kInvalidArgument, "the maximum of an EV field needs more bits than its mask has"};
  }
  return {};
}

}  // namespace

unsigned ev_width_bits(EvKind kind) {
  switch (kind) {
    case EvKind::kUdpPort:
      return 16;
    case EvKind::kStructured:
      return 32;
    case EvKind::kSrv6:
      return 128;
    case EvKind::kSrv6Segment:
      return 256;
  }
  return 0;
}

Status check_ev_format(const EvFormat& format) {
  if (format.widths.empty()) return {ErrorCode::kInvalidArgument, "an EV format needs a field"};
  unsigned total = 0;
  for (const std::uint8_t width : format.widths) {
    if (width == 0) return {ErrorCode::kInvalidArgument, "an EV format field has no width"};
    total += width;
    if (total > ev_width_bits(format.kind)) {
      return {ErrorCode::kTooLong, "the EV format is wider than a packet can carry"};
    }
  }
  return {};
}

Status check_ev_profile(const EvFormat& format, std::span<const EvField> fields) {
  if (fields.empty()) return {ErrorCode::kInvalidArgument, "an EV profile needs a field"};
  if (fields.size() > format.widths.size()) {
    return {ErrorCode::kTooLong, "the EV profile has more fields than its format"};
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Status status = check_field(fields[i], format.widths[i]);
    if (!status.ok()) return status;
  }
  return {};
}

unsigned compact_ev_bits(std::span<const EvField> fields) {
  unsigned bits = 0;
  for (const EvField& field : fields)
    bits += static_cast<unsigned>(std::popcount(field.mask));
  return bits;
}

Result<EvValue> expand_ev(const EvFormat& format, std::span<const EvField> fields,
                          const EvValue& compact) {
  MRC_ASSERT(fields.size() <= format.widths.size());
  if (!all_zero(compact, compact_ev_bits(fields), 8 * kEvBytes)) {
    return Status(ErrorCode::kInvalidArgument, "the EV has more bits than its profile uses");
  }
  EvValue expanded;
  unsigned from = 0;
  unsigned to = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const EvField& field = fields[i];
    const auto count = static_cast<unsigned>(std::popcount(field.mask));
    const std::uint32_t drawn = scatter(ev_bits(compact, from, count), field.mask);
    from += count;
    to += format.widths[i];
    put_ev_bits(expanded, to - field.width, field.width, (field.init_val & ~field.mask) | drawn);
  }
  return expanded;
}

Result<EvValue> compact_ev(const EvFormat& format, std::span<const EvField> fields,
                           const EvValue& expanded) {
  constexpr Status kMismatch(ErrorCode::kNotFound, "the EV does not have the profile's fixed bits");
  MRC_ASSERT(fields.size() <= format.widths.size());
  EvValue compact;
  unsigned from = 0;
  unsigned to = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const EvField& field = fields[i];
    const unsigned end = from + format.widths[i];
    const unsigned start = end - field.width;
    const std::uint32_t value = ev_bits(expanded, start, field.width);
    const bool fixed_agree = ((value ^ field.init_val) & ~field.mask) == 0;
    if (!fixed_agree || !all_zero(expanded, from, start)) return kMismatch;
    const auto count = static_cast<unsigned>(std::popcount(field.mask));
    put_ev_bits(compact, to, count, gather(value, field.mask));
    to += count;
    from = end;
  }
  if (!all_zero(expanded, from, 8 * kEvBytes)) return kMismatch;
  return compact;
}

EvLimits ev_limits(const EvField& field) {
  if (field.min_val == 0 && field.max_val == 0) {
    return {0, low_bits(static_cast<unsigned>(std::popcount(field.mask)))};
  }
  return {field.min_val, field.max_val};
}

void put_ev_bits(EvValue& ev, unsigned at, unsigned width, std::uint32_t value) {
  MRC_ASSERT(width <= kWordBits && at + width <= 8 * kEvBytes);
  for (unsigned i = 0; i < width; ++i) {
    if ((value >> (width - 1 - i) & 1) == 0) continue;
    std::uint8_t& byte = ev.bytes[(at + i) / 8];
    byte = static_cast<std::uint8_t>(byte | 0x80u >> (at + i) % 8);
  }
}

std::uint32_t ev_entropy(EvKind kind, const EvValue& expanded) {
  MRC_ASSERT(kind == EvKind::kUdpPort || kind == EvKind::kStructured);
  return ev_bits(expanded, 0, kind == EvKind::kUdpPort ? 16 : 32);
}

EvValue structured_ev(std::uint32_t entropy) {
  EvValue ev;
  put_ev_bits(ev, 0, kWordBits, entropy);
  return ev;
}

IpAddress ev_carrier(const EvValue& expanded) {
  IpAddress carrier;
  for (std::size_t i = 0; i < carrier.bytes.size(); ++i)
    carrier.bytes[i] = expanded.bytes[i];
  return carrier;
}

IpAddress ev_segment(const EvValue& expanded) {
  IpAddress segment;
  for (std::size_t i = 0; i < segment.bytes.size(); ++i)
    segment.bytes[i] = expanded.bytes[16 + i];
  return segment;
}

EvValue srv6_ev(const IpAddress& carrier, const IpAddress& segment) {
  EvValue ev;
  for (std::size_t i = 0; i < carrier.bytes.size(); ++i) {
    ev.bytes[i] = carrier.bytes[i];
    ev.bytes[16 + i] = segment.bytes[i];
  }
  return ev;
}

}  // namespace mrc::wire
