// Bytes <-> Packet for the transport part: BTH, extension headers, payload. Layouts: docs/wire.md.
//
// The functions here see what lies between the UDP header and the ICRC. They are pure: nothing is
// kept, nothing is allocated, and no input whatsoever makes them fail other than by their result.
//
// A Packet is the same in every dialect; where bytes depend on it, the functions take it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/dialect.h"
#include "wire/drop_reason.h"
#include "wire/icrc.h"
#include "wire/packet.h"

namespace mrc::wire {

inline constexpr std::size_t kBthLength = 12;
inline constexpr std::size_t kMethLength = 4;
inline constexpr std::size_t kTsethLength = 4;
inline constexpr std::size_t kRethLength = 16;
inline constexpr std::size_t kImmediateLength = 4;
inline constexpr std::size_t kAethLength = 4;
inline constexpr std::size_t kSethLength = 28;
inline constexpr std::size_t kCcStateLength = 8;
inline constexpr std::size_t kNethLength = 20;
inline constexpr std::size_t kPethLength = 16;
inline constexpr std::size_t kErthLength = 16;
inline constexpr std::size_t kEethLength = 36;
inline constexpr std::size_t kIcrcLength = 4;
// The longest header of all is a SACK or an endpoint response.
inline constexpr std::size_t kMaxTransportHeader = kBthLength + kSethLength + kCcStateLength;
static_assert(kMaxTransportHeader >= kBthLength + kEethLength);
static_assert(kMaxTransportHeader >=
              kBthLength + kMethLength + kTsethLength + kRethLength + kImmediateLength);

// Padding that brings a payload to a multiple of four bytes.
constexpr std::uint8_t pad_length(std::size_t payload_length) {
  return static_cast<std::uint8_t>((4 - payload_length % 4) % 4);
}

// Decodes one whole transport part. `transport` runs from the BTH to the last pad byte, without
// ICRC. On kNone `out` holds the packet and `payload` the write's data without padding, a view into
// `transport`; control packets have no payload. On any other result both are unspecified.
//
// Reserved bits are ignored. Reserved opcodes and enum values, a transport version other than 0,
// bytes behind a control header, and a payload that contradicts pad count, opcode or message length
// are refused.
[[nodiscard]] DropReason parse_transport(std::span<const std::byte> transport, Packet& out,
                                         std::span<const std::byte>& payload,
                                         const Dialect& dialect = kOpenMrc);

// The payload of writes up to this size is covered by the check in any case: it costs next to
// nothing, and most messages of programs that wait for each other are short.
inline constexpr std::size_t kMostAlwaysCovered = 256;

// Whether `sent`, behind a transport part, is a header check (wire/icrc.h). `icrc` holds what
// stands before the transport part.
[[nodiscard]] bool is_header_check(Icrc icrc, std::span<const std::byte> transport,
                                   std::uint32_t sent);

// Decodes what a switch left of a trimmed write: BTH and METH, and TSETH if BTH announces it.
// Whatever follows is ignored, since nothing vouches for it: address, key, length and immediate of
// `out` are zero. Only write packets can be trimmed; others are refused.
[[nodiscard]] DropReason parse_trimmed_transport(std::span<const std::byte> transport, Packet& out,
                                                 const Dialect& dialect = kOpenMrc);

// Encodes BTH and extension headers and returns their length, or 0 if `out` is too small. Payload,
// padding and ICRC are the caller's; `packet.bth.pad` is written as it stands. Fields wider in the
// struct than on the wire are cut to their low bits; reserved bits are sent as 0. The body must
// agree with the opcode.
[[nodiscard]] std::size_t build_transport(const Packet& packet, std::span<std::byte> out,
                                          const Dialect& dialect = kOpenMrc);

// Makes of the header of a packet in a run (move_on) that of `packet`, another one of it.
void move_header(std::span<std::byte> header, const Packet& packet);

// Whether `next` stands behind `before` in a run. Both are transport parts as parse_transport takes
// them; what that says of one holds for the other.
[[nodiscard]] bool continues_run(std::span<const std::byte> before,
                                 std::span<const std::byte> next);

// Bytes of BTH, METH and TSETH of a write: what a switch must keep when it trims.
[[nodiscard]] std::size_t trimmed_length(bool has_timestamp);

// Whether the low byte of a BTH is an opcode this protocol defines.
[[nodiscard]] bool is_known_opcode(std::uint8_t value);

}  // namespace mrc::wire
