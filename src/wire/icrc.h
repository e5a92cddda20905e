// The invariant CRC of RoCEv2: CRC-32 over everything a router does not change.
//
// It covers, in this order: eight bytes of ones in place of the InfiniBand local route header, the
// innermost IP header, the UDP header, and the transport part including padding. Fields that change
// on the way enter as ones: traffic class, flow label and hop limit (IPv4: TOS, TTL and header
// checksum), the UDP checksum, and byte 4 of the BTH. It is sent behind the padding, low byte
// first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mrc::wire {

// An ICRC under construction. Feed the pieces in wire order; a piece may be any number of bytes, so
// payload can stay where it is. Copying forks the computation.
class Icrc {
 public:
  // Starts with the stand-in for the local route header.
  Icrc();

  // An IPv4 header of 20 bytes or an IPv6 header of 40, as it stands on the wire.
  void add_ip_header(std::span<const std::byte> header);
  // The 8 bytes of the UDP header.
  void add_udp_header(std::span<const std::byte> header);
  // The transport part from its first byte. The first call must hold at least the 12 bytes of the
  // BTH.
  void add_transport(std::span<const std::byte> headers);
  // Bytes that enter as they are: payload, padding.
  void add(std::span<const std::byte> bytes);

  // The value of all that was added, in the order of its bytes on the wire read as little endian.
  std::uint32_t value() const { return ~state_; }
  // The same, marked as covering no payload: what stands in the place of the ICRC between two ends
  // that agreed on it, with only the headers added.
  std::uint32_t header_check() const;

 private:
  std::uint32_t state_;
};

// The four bytes of a value on the wire. The span holds at least four.
void store_icrc(std::uint32_t value, std::span<std::byte> out);
[[nodiscard]] std::uint32_t load_icrc(std::span<const std::byte> bytes);

// How the running machine computes CRC-32. All give the same result.
enum class CrcMethod : std::uint8_t {
  kTable,         // any machine: eight tables of 1 KiB
  kArmCrc,        // aarch64 CRC instructions, one stream
  kArmCrcFolded,  // three streams at once, joined by carry-less multiplication
  kX86Folded,     // x86-64 carry-less multiplication, four lanes
  kX86Wide,       // sixteen lanes, four to a register of AVX-512
};

// Whether this machine can run `method`, and the fastest one it can.
[[nodiscard]] bool crc_method_available(CrcMethod method);
[[nodiscard]] CrcMethod best_crc_method();

// Advances a CRC-32 register (reflected, polynomial 0x04C11DB7) over `bytes`, without the
// complement before and after. The second form is for tests and benchmarks; the method must be
// available.
[[nodiscard]] std::uint32_t crc32_update(std::uint32_t state, std::span<const std::byte> bytes);
[[nodiscard]] std::uint32_t crc32_update(std::uint32_t state, std::span<const std::byte> bytes,
                                         CrcMethod method);

}  // namespace mrc::wire
