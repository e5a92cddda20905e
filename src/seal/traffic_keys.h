// The keys of one chain: what one sender seals for one receiver, from its first packet on.
//
// A chain is named by cluster key, suite, flow and the sender's instance, so no two chains share a
// key. Its packets are numbered from 0; every 2^22 of them the key changes, well below the number
// of packets (2^23, RFC 9001 section 6.6) that one key of AES-GCM may seal.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "seal/key_ring.h"

namespace mrc::seal {

inline constexpr unsigned kEpochBits = 22;
constexpr std::uint64_t epoch_of(std::uint64_t number) { return number >> kEpochBits; }

struct ChainName {
  Suite suite = Suite::kAes128Gcm;
  Flow flow;
  std::uint64_t instance = 0;
};

class TrafficKeys {
 public:
  // A suite that the ring's library has.
  TrafficKeys(const Crypto& crypto, const KeyRing::Key& key, const ChainName& chain,
              Aead::Direction direction);

  // Starts the packet of that number, deriving the key of its epoch if it is not at hand: those of
  // two neighbouring epochs are kept, more than any replay window reaches back. Null: no memory.
  [[nodiscard]] Aead* begin(std::uint64_t number, std::span<const std::byte> associated);

 private:
  struct Epoch {
    Aead aead;
    SecretBytes<kNonceLength> iv;
    std::optional<std::uint64_t> number;  // none: no key yet
  };
  void derive(Epoch& epoch, std::uint64_t number) const;

  const Crypto* crypto_;
  Suite suite_;
  Digest secret_;
  std::array<Epoch, 2> epochs_;
};

}  // namespace mrc::seal
