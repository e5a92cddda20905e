// Where what stands in a sealed datagram. See docs/adr/0025-sealed-packets.md.
//
//   clear headers | seal header, 28 bytes | rest of the transport part, encrypted | tag, 16 bytes
//
// Clear are the headers that somebody on the way must read: of a write BTH, METH and TSETH, which
// are what a switch keeps when it trims; of any other packet the BTH. There is no ICRC.
//
// The seal header, big endian: format and suite (4 bits each), key id, two bytes of zero, instance
// (8), packet number (8), header tag (8).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "seal/siphash.h"
#include "wire/codec.h"
#include "wire/ip_address.h"

namespace mrc::seal {

// The transport version of a sealed packet's BTH. Ends that cannot open it drop it for that.
inline constexpr std::uint8_t kSealedVersion = 5;
inline constexpr std::uint8_t kSealFormat = 1;
inline constexpr std::size_t kSealHeaderLength = 28;
inline constexpr std::size_t kTagLength = 16;
// How much longer a sealed datagram is than the transport part, which has an ICRC otherwise.
inline constexpr std::size_t kSealOverhead = kSealHeaderLength + kTagLength;
// Of the seal header, what its own tag covers.
inline constexpr std::size_t kTaggedLength = 20;
static_assert(kTaggedLength + sizeof(std::uint64_t) == kSealHeaderLength);

enum class Suite : std::uint8_t { kAes128Gcm = 1, kChaCha20Poly1305 = 2 };
[[nodiscard]] const char* suite_name(Suite suite);

// The number of a cluster key.
enum class KeyId : std::uint8_t {};

// The address of an end as keys are bound to it: IPv6, or IPv4 as ::ffff:a.b.c.d.
struct Gid {
  std::array<std::byte, 16> bytes{};
  friend bool operator==(const Gid&, const Gid&) = default;
};
[[nodiscard]] Gid gid_of(const wire::IpAddress& address);

// Who sends to whom.
struct Flow {
  Gid source;
  Gid destination;
};

struct SealHeader {
  Suite suite = Suite::kAes128Gcm;
  KeyId key{};
  std::uint64_t instance = 0;
  std::uint64_t number = 0;
  std::uint64_t tag = 0;
};

// All but the tag, which covers what is written here.
void write_seal_header(const SealHeader& header, std::span<std::byte, kSealHeaderLength> out);
void write_header_tag(std::uint64_t tag, std::span<std::byte, kSealHeaderLength> out);
// False: not this format, no suite of ours, or bits set that must be zero.
[[nodiscard]] bool read_seal_header(std::span<const std::byte, kSealHeaderLength> bytes,
                                    SealHeader& header);

// What proves clear headers and seal header, and who sent them to whom. `tagged` are the clear
// headers as sent and the seal header up to its tag.
[[nodiscard]] std::uint64_t header_tag(std::span<const std::byte, SipHash::kKeyLength> key,
                                       const Flow& flow, std::span<const std::byte> tagged);

// How many bytes of a transport part, plain or sealed, stay readable; 0: shorter than a BTH, or no
// opcode of this protocol. The same in every dialect.
[[nodiscard]] std::size_t clear_length(std::span<const std::byte> transport);

// How many bytes of a sealed datagram a switch must keep when it trims, so that the rest can prove
// itself: 0 for what is not sealed, or never trimmed.
[[nodiscard]] std::size_t trimmed_length(std::span<const std::byte> datagram);

// Of a BTH.
[[nodiscard]] std::uint8_t transport_version(std::span<const std::byte> transport);
void set_transport_version(std::span<std::byte> transport, std::uint8_t version);

}  // namespace mrc::seal
