// Opens what others sealed for one receiver, each packet once.
//
// Cheap checks come first: form, then the header tag, which only members of the cluster can make
// and which binds headers, sender and receiver. A packet of a stranger ends there, after some tens
// of nanoseconds and before a key is derived or a byte is allocated. Then the replay window, then
// the payload. State changes only for packets that proved genuine.
//
// Not thread safe: belongs to one engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "seal/chain_table.h"
#include "seal/key_ring.h"

namespace mrc::seal {

enum class OpenResult : std::uint8_t {
  kOpened,
  kPlain,         // not sealed: transport version 0
  kMalformed,     // neither plain nor of our form
  kUnknownKey,    // sealed with a cluster key that is not in the ring
  kBadHeaderTag,  // not from a member, not for us, not from there, or damaged
  kUnknownSuite,  // the library here cannot do it
  kReplayed,
  kTooOld,  // older than the window tells
  kBadTag,  // genuine headers, damaged or changed behind them
  kCount,
};
inline constexpr std::size_t kOpenResultCount = static_cast<std::size_t>(OpenResult::kCount);
// A short stable name for logs and counters, e.g. "bad_header_tag".
[[nodiscard]] const char* open_result_name(OpenResult result);

// Whether a switch cut the packet, by its code point.
enum class Extent : std::uint8_t { kWhole, kTrimmed };

class Opener {
 public:
  Opener(KeyRingRef ring, const Gid& own);

  // `datagram` is all of the UDP payload, of which `source` is the sender. On kOpened `transport`,
  // a part of it, is what wire::parse_transport takes: version 0, headers, payload, padding; of a
  // trimmed packet what wire::parse_trimmed_transport takes. Otherwise it is empty. The bytes of
  // `datagram` are overwritten unless the result is kPlain.
  //
  // Allocates only for the first packet of a chain and when its key changes.
  [[nodiscard]] OpenResult open(const Gid& source, std::span<std::byte> datagram, Extent extent,
                                std::span<std::byte>& transport);

  // What was seen stays known, also should a key that is gone come back.
  void set_ring(KeyRingRef ring);

  std::size_t chains() const { return chains_.size(); }
  // Whether a packet of that sender was opened and its chain is not forgotten. Slow.
  bool has_opened(const Gid& source) const { return chains_.has_source(source); }

 private:
  TrafficKeys derive(const KeyRing::Key& key, const ChainId& id) const;
  OpenResult check_new(const Chain* chain, const ChainId& id, std::uint64_t number) const;

  KeyRingRef ring_;
  Gid own_;
  ChainTable chains_;
};

// Opens a datagram that was captured, as often as one likes. For tools: slow, and whether the
// packet is new is not asked.
[[nodiscard]] OpenResult open_captured(const KeyRing& ring, const Flow& flow,
                                       std::span<std::byte> datagram, Extent extent,
                                       std::span<std::byte>& transport);

}  // namespace mrc::seal
