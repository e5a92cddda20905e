// A test of this test: each planted bug of the engine is switched on in turn, and some seed must
// fail.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mrc::dst {

struct MutantOptions {
  std::uint64_t seeds_per_mutant = 1'000;
  std::uint64_t first_seed = 1;
  std::vector<std::uint64_t> more_seeds;  // tried after those
  unsigned jobs = 1;
  std::string only;  // name of one bug, or empty
  std::vector<std::string> not_hunted;
  std::string results;  // file, or empty
};

// Switches on one planted bug in this process. False if there is none of that name in this build.
bool plant_bug(const std::string& name);

// Prints a table. Returns the exit status: 0 all caught, 1 a bug survived, 2 no bugs in this build.
int run_mutants(const MutantOptions& options);

}  // namespace mrc::dst
