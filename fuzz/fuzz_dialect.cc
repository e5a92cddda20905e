// A line that names a dialect, and behind it a transport part that is read in it.
#include <string_view>
#include <vector>

#include "fuzz/fuzz_support.h"
#include "wire/codec.h"
#include "wire/dialect.h"

using mrc::DropReason;
using mrc::fuzz::require;
namespace wire = mrc::wire;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t line = std::min(text.find('\n'), size);
  const wire::DialectParse named = wire::parse_dialect(text.substr(0, line));
  if (!named.ok()) return 0;
  const wire::DialectParse again = wire::parse_dialect(wire::dialect_text(named.dialect).view());
  require(again.ok() && again.dialect == named.dialect);
  require(wire::first_conflict(named.dialect, again.dialect) == nullptr);

  const auto bytes = std::as_bytes(std::span(data, size)).subspan(std::min(line + 1, size));
  wire::Packet packet;
  std::span<const std::byte> payload;
  if (wire::parse_transport(bytes, packet, payload, named.dialect) != DropReason::kNone) return 0;
  std::vector<std::byte> built(wire::header_length(packet));
  require(wire::build_transport(packet, built, named.dialect) == built.size());
  built.insert(built.end(), payload.begin(), payload.end());
  built.resize(built.size() + packet.bth.pad);
  wire::Packet second;
  require(wire::parse_transport(built, second, payload, named.dialect) == DropReason::kNone);
  require(second == packet);
  return 0;
}
