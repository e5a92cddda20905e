// Formats and profiles of entropy values as a controller may state them. What passes the checks
// must expand, come back, and draw within its limits.
#include <array>
#include <bit>
#include <vector>

#include "fuzz/fuzz_support.h"
#include "wire/ev.h"

using mrc::fuzz::require;
namespace wire = mrc::wire;

namespace {

constexpr std::size_t kMaxFields = 12;

wire::EvField take_field(mrc::fuzz::Input& input) {
  // Most random masks would be refused; one bit of the input keeps them in range.
  wire::EvField field{.width = input.u8()};
  const bool tame = (field.width & 0x80) != 0;
  field.width &= 0x7F;
  field.init_val = input.u32();
  field.mask = input.u32();
  field.min_val = input.u32();
  field.max_val = input.u32();
  if (!tame) return field;
  field.width = 1 + field.width % 32;
  const std::uint32_t all = 0xFFFFFFFFu >> (32 - field.width);
  field.init_val &= all;
  field.mask &= all;
  const auto bits = static_cast<unsigned>(std::popcount(field.mask));
  const std::uint32_t most = bits == 0 ? 0 : 0xFFFFFFFFu >> (32 - bits);
  field.max_val &= most;
  if (field.min_val > field.max_val) field.min_val = 0;
  return field;
}

void check_round_trip(const wire::EvFormat& format, std::span<const wire::EvField> fields,
                      const wire::EvValue& compact) {
  const auto expanded = wire::expand_ev(format, fields, compact);
  if (!expanded.ok()) return;
  const auto back = wire::compact_ev(format, fields, expanded.value());
  require(back.ok() && back.value() == compact);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mrc::fuzz::Input input(data, size);
  const std::uint8_t choice = input.u8();
  std::vector<std::uint8_t> widths(choice / 4 % (kMaxFields + 1));
  for (std::uint8_t& width : widths)
    width = input.u8();
  std::vector<wire::EvField> fields(input.u8() % (kMaxFields + 1));
  for (wire::EvField& field : fields)
    field = take_field(input);

  const wire::EvFormat format{.kind = static_cast<wire::EvKind>(choice % 4), .widths = widths};
  if (!wire::check_ev_format(format).ok()) return 0;
  if (!wire::check_ev_profile(format, fields).ok()) return 0;
  require(wire::compact_ev_bits(fields) <= wire::ev_width_bits(format.kind));

  wire::EvValue given;
  for (std::uint8_t& byte : given.bytes)
    byte = input.u8();
  check_round_trip(format, fields, given);
  const auto compact = wire::compact_ev(format, fields, given);
  if (compact.ok()) {
    const auto expanded = wire::expand_ev(format, fields, compact.value());
    require(expanded.ok() && expanded.value() == given);
  }

  const wire::EvValue drawn = wire::generate_ev(fields, [&input] { return input.u64(); });
  require(wire::expand_ev(format, fields, drawn).ok());
  check_round_trip(format, fields, drawn);
  for (const wire::EvField& field : fields) {
    const wire::EvLimits limits = wire::ev_limits(field);
    require(limits.min <= limits.max);
  }
  return 0;
}
