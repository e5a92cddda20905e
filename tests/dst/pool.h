// Many seeds on all cores. Each worker is a process of its own, so that an assertion, a crash or an
// endless loop in the engine costs one seed and is reported like any other failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dst/run_seed.h"

namespace mrc::dst {

struct Failure {
  std::uint64_t seed = 0;
  std::string reason;
};

struct PoolOptions {
  unsigned jobs = 1;
  bool progress = false;            // a line on standard error every two seconds
  std::size_t failures = 16;        // stop after so many
  unsigned seconds_per_seed = 120;  // of processor time, whatever else the machine does
  unsigned planted_bug = 0;         // switched on in the workers; mutants build only
};

struct PoolResult {
  Totals totals;
  std::vector<Failure> failures;  // by seed
};

PoolResult run_pool(const std::vector<std::uint64_t>& seeds, const PoolOptions& options);

}  // namespace mrc::dst
