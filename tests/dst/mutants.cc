#include "dst/mutants.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <vector>

#include "base/planted_bug.h"
#include "dst/pool.h"
#include "dst/results.h"
#include "dst/theme.h"

namespace mrc::dst {
namespace {

#ifdef MRC_PLANTED_BUGS
constexpr bool kHasBugs = true;
#else
constexpr bool kHasBugs = false;
#endif

struct HuntResult {
  bool caught = false;
  std::uint64_t seeds = 0;
  Failure failure;
};

PoolOptions pool_options(const MutantOptions& options) {
  PoolOptions pool;
  pool.jobs = options.jobs;
  pool.seconds_per_seed = 30;
  return pool;
}

bool is_hunted(const std::string& name, const MutantOptions& options) {
  if (!options.only.empty()) return name == options.only;
  return std::find(options.not_hunted.begin(), options.not_hunted.end(), name) ==
         options.not_hunted.end();
}

// Seeds that pass without a bug. What fails anyhow proves nothing.
std::vector<std::uint64_t> sound_seeds(const MutantOptions& options) {
  std::vector<std::uint64_t> seeds;
  for (std::uint64_t i = 0; i < options.seeds_per_mutant; ++i) {
    const std::uint64_t number = options.first_seed + i;
    if (i % 4 == 0) seeds.push_back(themed_seed(Theme::kForger, number));  // not in the mix
    seeds.push_back(mixed_seed(number));
  }
  seeds.insert(seeds.end(), options.more_seeds.begin(), options.more_seeds.end());
  PoolOptions pool = pool_options(options);
  pool.failures = seeds.size();
  for (const Failure& failure : run_pool(seeds, pool).failures) {
    std::printf("seed %" PRIu64 " fails without a planted bug and is left out: %s\n", failure.seed,
                failure.reason.c_str());
    seeds.erase(std::find(seeds.begin(), seeds.end(), failure.seed));
  }
  return seeds;
}

HuntResult hunt(unsigned bug, const std::vector<std::uint64_t>& seeds,
                const MutantOptions& options) {
  PoolOptions pool = pool_options(options);
  pool.failures = 1;
  pool.planted_bug = bug;
  const PoolResult result = run_pool(seeds, pool);
  HuntResult outcome;
  outcome.caught = !result.failures.empty();
  outcome.seeds = result.totals.seeds;
  if (outcome.caught) outcome.failure = result.failures.front();
  return outcome;
}

}  // namespace

bool plant_bug([[maybe_unused]] const std::string& name) {
#ifdef MRC_PLANTED_BUGS
  for (unsigned bug = 1; bug < static_cast<unsigned>(PlantedBug::kCount); ++bug) {
    if (name != kPlantedBugs[bug].name) continue;
    active_planted_bug = static_cast<PlantedBug>(bug);
    return true;
  }
#endif
  return false;
}

int run_mutants(const MutantOptions& options) {
  if (!kHasBugs) {
    std::fprintf(stderr, "dst: no planted bugs in this build; use the mutants preset\n");
    return 2;
  }
  const std::vector<std::uint64_t> sound = sound_seeds(options);
  unsigned caught = 0;
  unsigned survived = 0;
  std::uint64_t seeds = 0;
  std::printf("%-36s %6s %6s  %s\n", "planted bug", "seeds", "seed", "caught by");
  for (unsigned bug = 1; bug < static_cast<unsigned>(PlantedBug::kCount); ++bug) {
    const PlantedBugInfo& info = kPlantedBugs[bug];
    if (!is_hunted(info.name, options)) continue;
    const HuntResult outcome = hunt(bug, sound, options);
    seeds += outcome.seeds;
    if (outcome.caught) {
      ++caught;
      std::printf("%-36s %6" PRIu64 " %6" PRIu64 "  %s\n", info.name, outcome.seeds,
                  outcome.failure.seed, outcome.failure.reason.c_str());
    } else {
      ++survived;
      std::printf("%-36s %6" PRIu64 " %6s  SURVIVED: %s\n", info.name, outcome.seeds, "-",
                  info.what);
    }
    std::fflush(stdout);
  }
  std::printf("%u planted bugs caught, %u survived\n", caught, survived);
  if (!options.results.empty() &&
      !test::write_results(options.results, "dst mutants",
                           {{"caught", caught}, {"survived", survived}, {"seeds", seeds}})) {
    return 1;
  }
  return survived == 0 ? 0 : 1;
}

}  // namespace mrc::dst
