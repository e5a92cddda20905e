// What the forger does: packets in the name of the peer with one thing wrong, and the check that
// has to stop each of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "wire/drop_reason.h"

namespace mrc::dst {

enum class Attack : std::uint8_t {
#define MRC_DST_ATTACK(name, text, stop) name,
#include "dst/attacks.inc"
#undef MRC_DST_ATTACK
  kCount,  // no attack
};
inline constexpr std::size_t kAttackCount = static_cast<std::size_t>(Attack::kCount);

struct AttackInfo {
  const char* text;
  DropReason must_stop;
};
inline constexpr AttackInfo kAttacks[] = {
#define MRC_DST_ATTACK(name, text, stop) {text, DropReason::stop},
#include "dst/attacks.inc"
#undef MRC_DST_ATTACK
};

constexpr const AttackInfo& info(Attack attack) {
  return kAttacks[static_cast<std::size_t>(attack)];
}

using AttackCounts = std::array<std::uint64_t, kAttackCount>;

}  // namespace mrc::dst
