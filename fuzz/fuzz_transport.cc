// Bytes between UDP header and ICRC. Whatever parses must mean the same after it is built again.
#include <array>
#include <vector>

#include "fuzz/fuzz_support.h"
#include "wire/codec.h"

using mrc::DropReason;
using mrc::fuzz::require;
namespace wire = mrc::wire;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  wire::Packet packet;
  std::span<const std::byte> payload;
  if (wire::parse_transport(bytes, packet, payload) != DropReason::kNone) return 0;

  const std::size_t length = wire::header_length(packet);
  require(length + payload.size() + packet.bth.pad == size);
  require(packet.bth.pad == wire::pad_length(payload.size()));
  require(payload.empty() || wire::is_write(packet.bth.opcode));

  std::vector<std::byte> again(size);
  require(wire::build_transport(packet, again) == length);
  std::copy(payload.begin(), payload.end(), again.begin() + static_cast<std::ptrdiff_t>(length));
  wire::Packet second;
  std::span<const std::byte> second_payload;
  require(wire::parse_transport(again, second, second_payload) == DropReason::kNone);
  require(second == packet);
  require(std::equal(payload.begin(), payload.end(), second_payload.begin(), second_payload.end()));

  // One byte less, of the buffer or of the headers, must be noticed.
  std::array<std::byte, wire::kMaxTransportHeader> room{};
  require(wire::build_transport(packet, std::span(room).first(length - 1)) == 0);
  require(wire::parse_transport(bytes.first(length - 1), second, second_payload) ==
          DropReason::kTruncated);
  return 0;
}
