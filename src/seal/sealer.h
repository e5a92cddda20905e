// Seals what one sender has for one receiver.
//
// No nonce ever comes twice: every sealer begins a chain of its own, named by 64 random bits from
// the kernel (the instance), and numbers its packets. It begins another chain, with another
// instance and from 0, when the process is a child of the one it was made in, when the cluster key
// changes, and when numbers run out. Nothing depends on clocks or on what was before a restart; an
// instance cannot be chosen.
//
// Not thread safe: belongs to one engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "seal/key_ring.h"
#include "seal/traffic_keys.h"
#include "wire/frame.h"

namespace mrc::seal {

struct SealerOptions {
  std::optional<Suite> suite;      // none: what this processor is good at
  std::uint64_t first_number = 0;  // of the first chain; tests go where chains grow old
};

class Sealer {
 public:
  Sealer(KeyRingRef ring, const Flow& flow, const SealerOptions& options = {});

  // Bytes of the datagram that seal() makes.
  static constexpr std::size_t sealed_length(std::size_t header_length, std::size_t payload_length,
                                             unsigned pad) {
    return header_length + payload_length + pad + kSealOverhead;
  }

  // Writes the whole datagram to `out` and returns its length; 0 if it does not fit, or for want of
  // memory. `header` is what wire::build_transport made; `pad` bytes of zero follow the payload, of
  // which no piece overlaps `out`. Allocates only when a chain or its key changes.
  [[nodiscard]] std::size_t seal(std::span<const std::byte> header, wire::PayloadPieces payload,
                                 unsigned pad, std::span<std::byte> out);

  // Another first key begins another chain.
  void set_ring(KeyRingRef ring);

  Suite suite() const { return chain_.suite; }
  std::uint64_t instance() const { return chain_.instance; }
  std::uint64_t next_number() const { return number_; }

 private:
  void begin_chain(std::uint64_t first_number);
  void write_headers(std::span<const std::byte> clear, std::span<std::byte> out) const;

  KeyRingRef ring_;
  ChainName chain_;
  std::uint64_t generation_ = 0;
  std::uint64_t number_ = 0;
  std::optional<TrafficKeys> keys_;
};

}  // namespace mrc::seal
