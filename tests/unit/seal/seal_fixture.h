// What the tests of sealed traffic share: a ring with a known secret, two ends, packets of all
// kinds.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "seal/crypto.h"
#include "seal/key_ring.h"
#include "seal/opener.h"
#include "seal/sealer.h"
#include "unit/wire/wire_samples.h"
#include "wire/codec.h"
#include "wire/ip_address.h"

namespace mrc::seal::test {

using wire::test::Bytes;

inline const Crypto& crypto() {
  const auto loaded = Crypto::load();
  if (!loaded.ok()) {
    ADD_FAILURE() << loaded.status().what();
    std::abort();
  }
  return *loaded.value();
}

inline ClusterKey sample_key(unsigned id, unsigned salt = 0) {
  ClusterKey key;
  key.id = KeyId{static_cast<std::uint8_t>(id)};
  for (std::size_t i = 0; i < key.secret.bytes.size(); ++i)
    key.secret.bytes[i] = static_cast<std::byte>(i + 16 * id + salt);
  return key;
}

inline KeyRingRef ring_of(const ClusterKeys& keys) {
  return std::make_shared<const KeyRing>(crypto(), keys);
}
inline KeyRingRef sample_ring() { return ring_of({sample_key(0)}); }

inline Gid host(unsigned number) {
  return gid_of(wire::ipv6_address(0xfc00'0001'0000'0000, number));
}
inline Flow sample_flow() { return {host(1), host(2)}; }

inline constexpr Suite kAllSuites[] = {Suite::kAes128Gcm, Suite::kChaCha20Poly1305};

// A transport part in pieces, as an engine has it.
struct Plain {
  wire::Packet packet;
  Bytes header;
  Bytes payload;
  Bytes whole;  // header, payload, padding

  Plain(const wire::Packet& from, Bytes data, const wire::Dialect& dialect = wire::kOpenMrc)
      : packet(from), header(wire::header_length(from)), payload(std::move(data)) {
    EXPECT_EQ(wire::build_transport(packet, header, dialect), header.size());
    whole = header;
    whole.insert(whole.end(), payload.begin(), payload.end());
    whole.resize(whole.size() + packet.bth.pad);
  }
};

inline Plain sample(wire::Opcode opcode, std::uint32_t length, std::uint64_t seed = 1,
                    const wire::Dialect& dialect = wire::kOpenMrc) {
  wire::test::Random random(seed);
  return {wire::test::random_packet(random, opcode, length), wire::test::numbered_bytes(length),
          dialect};
}
inline Plain sample_write(std::uint32_t length = 64) {
  return sample(wire::Opcode::kWriteOnly, length);
}
inline Plain sample_ack() { return sample(wire::Opcode::kAck, 0); }

inline Bytes seal(Sealer& sealer, const Plain& plain) {
  const std::span<const std::byte> piece(plain.payload);
  Bytes out(Sealer::sealed_length(plain.header.size(), plain.payload.size(), plain.packet.bth.pad));
  EXPECT_EQ(sealer.seal(plain.header, {&piece, 1}, plain.packet.bth.pad, out), out.size());
  return out;
}

struct Opened {
  OpenResult result;
  Bytes transport;
};

// Takes a copy: opening overwrites.
inline Opened open(Opener& opener, Bytes datagram, const Gid& source = host(1),
                   Extent extent = Extent::kWhole) {
  std::span<std::byte> transport;
  const OpenResult result = opener.open(source, datagram, extent, transport);
  return {result, Bytes(transport.begin(), transport.end())};
}

inline OpenResult result_of(Opener& opener, const Bytes& datagram, const Gid& source = host(1),
                            Extent extent = Extent::kWhole) {
  return open(opener, datagram, source, extent).result;
}

}  // namespace mrc::seal::test

namespace mrc::seal {
inline void PrintTo(OpenResult result, std::ostream* out) { *out << open_result_name(result); }
}  // namespace mrc::seal
