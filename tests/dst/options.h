// The command line of the test program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dst/theme.h"

namespace mrc::dst {

enum class Mode : std::uint8_t { kHelp, kOneSeed, kManySeeds, kSeedFiles, kMutants };

struct Options {
  Mode mode = Mode::kHelp;
  std::uint64_t seed = 0;
  std::uint64_t seeds = 0;
  std::uint64_t first = 1;
  std::optional<Theme> theme = Theme::kAny;  // none: mixed
  std::vector<std::string> seed_files;
  unsigned jobs = 1;
  std::uint64_t failures = 16;  // stop after so many
  bool log = false;
  bool hash = false;
  bool must_fail = false;     // every seed
  std::uint64_t strikes = 0;  // each attack of the forger must have struck so often
  std::uint64_t seeds_per_mutant = 1'000;
  std::string mutant;
  std::vector<std::string> not_hunted;  // names of planted bugs
  std::string results;
};

extern const char kUsage[];

// Nothing when the arguments make no sense; the reason is on standard error.
std::optional<Options> parse_options(int argc, char** argv);

}  // namespace mrc::dst
