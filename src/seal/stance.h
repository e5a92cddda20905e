// How an end treats its packets, as it tells a peer before the two talk: whether it seals, and with
// which keys. So ends that would drop each other's packets learn it from a line and not from
// silence (docs/adr/0025-sealed-packets.md).
//
// Told in the clear, so it must be worth nothing to who listens: of a key its number and the first
// 20 bits of its fingerprint, a hash of 256 random bits. And it may be a lie: whoever is refused
// for it could as well have hung up, and whoever is let in still has to seal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "seal/layout.h"

namespace mrc::seal {

struct Stance {
  struct Key {
    KeyId id{};
    std::uint32_t print = 0;  // kPrintBits of the fingerprint
    friend bool operator==(const Key&, const Key&) = default;
  };
  // Five of the eight digits that `mrc key check` shows.
  static constexpr unsigned kPrintBits = 20;

  std::vector<Key> keys;  // one or two, the first one seals; none: packets are plain
  bool seals() const { return !keys.empty(); }
  friend bool operator==(const Stance&, const Stance&) = default;
};

// What to do where keys differ, behind the line that says so.
inline constexpr std::string_view kSameKeyFile =
    "; give both ends the same key file (mrc key check FILE shows which keys it has)";

// Never 0, and its highest byte is no printable character.
[[nodiscard]] std::uint64_t stance_code(const Stance& stance);
// None: not a number that stance_code() makes.
[[nodiscard]] std::optional<Stance> stance_of_code(std::uint64_t code);

// Why the two would not open each other's packets and what to do, as one line; empty when they
// would. "Here" is `own`.
[[nodiscard]] std::string stance_conflict(const Stance& own, const Stance& theirs);

}  // namespace mrc::seal
