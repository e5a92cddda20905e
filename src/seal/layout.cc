#include "seal/layout.h"

#include <algorithm>

#include "wire/byte_order.h"
#include "wire/packet.h"

namespace mrc::seal {
namespace {

constexpr std::size_t kKeyOffset = 1;
constexpr std::size_t kReservedOffset = 2;
constexpr std::size_t kInstanceOffset = 4;
constexpr std::size_t kNumberOffset = 12;
static_assert(kNumberOffset + sizeof(std::uint64_t) == kTaggedLength);

// In the BTH.
constexpr std::size_t kVersionOffset = 1;
constexpr std::byte kVersionBits{0x0F};
constexpr std::size_t kFlagsOffset = 8;
constexpr std::byte kTimestampFlag{0x10};

}  // namespace

const char* suite_name(Suite suite) {
  return suite == Suite::kAes128Gcm ? "AES-128-GCM" : "ChaCha20-Poly1305";
}

Gid gid_of(const wire::IpAddress& address) {
  Gid gid;
  const auto bytes = std::as_bytes(std::span(address.bytes));
  if (!address.is_v4) {
    std::copy(bytes.begin(), bytes.end(), gid.bytes.begin());
    return gid;
  }
  gid.bytes[10] = gid.bytes[11] = std::byte{0xFF};
  std::copy_n(bytes.begin(), 4, gid.bytes.begin() + 12);
  return gid;
}

void write_seal_header(const SealHeader& header, std::span<std::byte, kSealHeaderLength> out) {
  out[0] = static_cast<std::byte>(kSealFormat << 4 | static_cast<unsigned>(header.suite));
  out[kKeyOffset] = static_cast<std::byte>(header.key);
  wire::store_big_endian(&out[kReservedOffset], std::uint16_t{0});
  wire::store_big_endian(&out[kInstanceOffset], header.instance);
  wire::store_big_endian(&out[kNumberOffset], header.number);
}

void write_header_tag(std::uint64_t tag, std::span<std::byte, kSealHeaderLength> out) {
  wire::store_big_endian(&out[kTaggedLength], tag);
}

bool read_seal_header(std::span<const std::byte, kSealHeaderLength> bytes, SealHeader& header) {
  const auto first = std::to_integer<unsigned>(bytes[0]);
  const unsigned suite = first & 0x0F;
  if (first >> 4 != kSealFormat || suite < 1 || suite > 2) return false;
  if (wire::load_big_endian<std::uint16_t>(&bytes[kReservedOffset]) != 0) return false;
  header.suite = static_cast<Suite>(suite);
  header.key = KeyId{std::to_integer<std::uint8_t>(bytes[kKeyOffset])};
  header.instance = wire::load_big_endian<std::uint64_t>(&bytes[kInstanceOffset]);
  header.number = wire::load_big_endian<std::uint64_t>(&bytes[kNumberOffset]);
  header.tag = wire::load_big_endian<std::uint64_t>(&bytes[kTaggedLength]);
  return true;
}

std::uint64_t header_tag(std::span<const std::byte, SipHash::kKeyLength> key, const Flow& flow,
                         std::span<const std::byte> tagged) {
  SipHash hash(key);
  hash.add(flow.source.bytes);
  hash.add(flow.destination.bytes);
  return hash.finish(tagged);
}

std::size_t clear_length(std::span<const std::byte> transport) {
  if (transport.size() < wire::kBthLength) return 0;
  const auto opcode = std::to_integer<std::uint8_t>(transport[0]);
  if (!wire::is_known_opcode(opcode)) return 0;
  if (!wire::is_write(wire::Opcode{opcode})) return wire::kBthLength;
  return wire::trimmed_length((transport[kFlagsOffset] & kTimestampFlag) != std::byte{0});
}

std::size_t trimmed_length(std::span<const std::byte> datagram) {
  if (transport_version(datagram) != kSealedVersion) return 0;
  const std::size_t clear = clear_length(datagram);
  // Only writes have more than a BTH to keep, and only they are ever trimmed.
  return clear > wire::kBthLength ? clear + kSealHeaderLength : 0;
}

std::uint8_t transport_version(std::span<const std::byte> transport) {
  if (transport.size() <= kVersionOffset) return 0;
  return std::to_integer<std::uint8_t>(transport[kVersionOffset] & kVersionBits);
}

void set_transport_version(std::span<std::byte> transport, std::uint8_t version) {
  std::byte& flags = transport[kVersionOffset];
  flags = (flags & ~kVersionBits) | (static_cast<std::byte>(version) & kVersionBits);
}

}  // namespace mrc::seal
