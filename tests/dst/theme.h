// What a run is about. Most seeds leave it to the swarm; the others look into a corner that the
// swarm rarely comes to. The top bits of a seed name its theme, so that one number still decides
// everything, and the seeds of one theme keep their story when another is added.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "dst/swarm.h"

namespace mrc::dst {

enum class Theme : std::uint8_t {
  kAny,
  kOnePath,      // one path of each profile is left for ever, ports come and go before
  kSomePaths,    // some paths stay dead for ever, each direction on its own
  kLastPort,     // one plane is left for ever, and its port has just come back
  kIdle,         // long silences between short bursts
  kManyQps,      // many queue pairs between two or three hosts
  kStalls,       // hosts that stand still and then get everything at once
  kWindows,      // windows that change, PSNs that wrap
  kSoftwareNic,  // the engine as the software NIC sets it up
  kBottleneck,   // many hosts and paths, one queue in the middle that is too slow for them
  kDialects,     // packets as bytes, in another dialect than ours
  kController,   // profiles that change under queue pairs in use
  kNarrow,       // queue pairs with paths on some ports only, and these come and go
  kForger,       // packets in the name of the peer, with one thing wrong
  kInsider,      // the same with nothing wrong: every seed must fail
};
inline constexpr unsigned kThemeCount = 15;
// Those that mixed_seed() goes round: its seeds keep their themes.
inline constexpr unsigned kMixedThemeCount = 10;

const char* theme_name(Theme theme);
std::optional<Theme> theme_of_name(std::string_view name);

// Numbers below this are seeds without a theme.
inline constexpr unsigned kThemeShift = 48;
constexpr std::uint64_t themed_seed(Theme theme, std::uint64_t number) {
  return static_cast<std::uint64_t>(theme) << kThemeShift | number;
}
// kAny for numbers whose top bits mean nothing.
Theme theme_of_seed(std::uint64_t seed);
// Every second number is a seed without a theme, the others go round the first themes.
std::uint64_t mixed_seed(std::uint64_t number);

// Makes the world what the theme wants it to be.
void apply_theme(Swarm& swarm);

}  // namespace mrc::dst
