// What is left of a trimmed packet. It must agree with the whole packet, where there is one.
#include <vector>

#include "fuzz/fuzz_support.h"
#include "wire/codec.h"

using mrc::DropReason;
using mrc::fuzz::require;
namespace wire = mrc::wire;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  wire::Packet trimmed;
  const DropReason reason = wire::parse_trimmed_transport(bytes, trimmed);

  wire::Packet whole;
  std::span<const std::byte> payload;
  const bool is_whole = wire::parse_transport(bytes, whole, payload) == DropReason::kNone;
  if (is_whole && wire::is_write(whole.bth.opcode)) {
    const auto& all = std::get<wire::Write>(whole.body);
    require(reason == DropReason::kNone);
    const auto& some = std::get<wire::Write>(trimmed.body);
    require(trimmed.bth == whole.bth);
    require(some.msn == all.msn && some.receive_msn == all.receive_msn);
    require(some.timestamp == all.timestamp);
  }
  if (reason != DropReason::kNone) return 0;

  require(wire::is_write(trimmed.bth.opcode));
  const std::size_t kept = wire::trimmed_length(trimmed.bth.has_timestamp);
  require(size >= kept);
  wire::Packet second;
  require(wire::parse_trimmed_transport(bytes.first(kept - 1), second) == DropReason::kTruncated);
  require(wire::parse_trimmed_transport(bytes.first(kept), second) == DropReason::kNone);
  require(second == trimmed);

  std::vector<std::byte> again(wire::header_length(trimmed));
  require(wire::build_transport(trimmed, again) == again.size());
  require(wire::parse_trimmed_transport(std::span(again).first(kept), second) == DropReason::kNone);
  require(second == trimmed);
  return 0;
}
