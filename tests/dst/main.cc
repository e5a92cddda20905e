// Deterministic simulation test of the protocol engine; see docs/testing.md.
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "dst/mutants.h"
#include "dst/options.h"
#include "dst/pool.h"
#include "dst/results.h"
#include "dst/run_seed.h"

namespace mrc::dst {
namespace {

int run_one(const Options& options) {
  if (!options.mutant.empty() && !plant_bug(options.mutant)) {
    std::fprintf(stderr, "dst: no planted bug '%s' in this build\n", options.mutant.c_str());
    return 2;
  }
  const SeedResult result = run_seed(options.seed, options.log ? stdout : nullptr);
  if (result.ok) {
    std::printf("seed %" PRIu64 " passed: %" PRIu64 " packets, %" PRIu64
                " faults, trace %016" PRIx64 "\n",
                options.seed, result.totals.packets, result.totals.fault_count(), result.hash);
    return 0;
  }
  std::printf("seed %" PRIu64 " FAILED: %s\n", options.seed, result.reason.c_str());
  return 1;
}

// Lines of "number  # remark"; empty lines and remarks alone are fine.
bool read_seeds(const std::string& path, std::vector<std::uint64_t>& seeds) {
  std::ifstream in(path);
  std::string line;
  while (std::getline(in, line)) {
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    std::size_t used = 0;
    seeds.push_back(std::stoull(line, &used));
    if (line.find_first_not_of(" \t", used) != std::string::npos) return false;
  }
  return in.eof();
}

bool read_files(const Options& options, std::vector<std::uint64_t>& seeds) {
  for (const std::string& path : options.seed_files) {
    if (read_seeds(path, seeds)) continue;
    std::fprintf(stderr, "dst: %s is not a list of seeds\n", path.c_str());
    return false;
  }
  return true;
}

void print_verdict(const char* program, const PoolResult& result) {
  for (const Failure& failure : result.failures) {
    std::printf("seed %" PRIu64 " FAILED: %s\n  replay: %s --seed %" PRIu64 " --log\n",
                failure.seed, failure.reason.c_str(), program, failure.seed);
  }
  const Totals& totals = result.totals;
  std::printf("%" PRIu64 " seeds, %zu failed, %" PRIu64 " packets, %" PRIu64 " faults, %" PRIu64
              " seeds run twice, longest drain %" PRIu64 "%% of its bound (seed %" PRIu64 ")\n",
              totals.seeds, result.failures.size(), totals.packets, totals.fault_count(),
              totals.rerun, totals.drain_permille / 10, totals.slowest_seed);
}

// A check that no packet reaches any more proves nothing.
bool check_strikes(const Options& options, const Totals& totals) {
  bool enough = true;
  for (std::size_t i = 0; i < kAttackCount && options.strikes > 0; ++i) {
    std::printf("%8" PRIu64 "  %s: %s\n", totals.attacks[i], kAttacks[i].text,
                drop_reason_name(kAttacks[i].must_stop));
    enough = enough && totals.attacks[i] >= options.strikes;
  }
  if (!enough) std::printf("an attack was made less than %" PRIu64 " times\n", options.strikes);
  return enough;
}

int run_many(const char* program, const Options& options, const std::vector<std::uint64_t>& seeds) {
  PoolOptions pool;
  pool.jobs = options.jobs;
  pool.failures = options.failures;
  pool.progress = isatty(STDERR_FILENO) != 0;
  const PoolResult result = run_pool(seeds, pool);
  print_verdict(program, result);
  if (options.hash) std::printf("combined hash %016" PRIx64 "\n", result.totals.combined_hash);
  const bool all_struck = check_strikes(options, result.totals);
  if (!options.results.empty() &&
      !test::write_results(options.results, std::filesystem::path(options.results).stem(),
                           result_lines(result.totals))) {
    std::fprintf(stderr, "dst: cannot write %s\n", options.results.c_str());
    return 1;
  }
  const bool as_wanted = options.must_fail ? result.failures.size() == seeds.size()
                                           : result.failures.empty() && all_struck;
  return as_wanted ? 0 : 1;
}

int run(const char* program, const Options& options) {
  std::vector<std::uint64_t> seeds;
  switch (options.mode) {
    case Mode::kHelp:
      std::fputs(kUsage, stdout);
      return 0;
    case Mode::kOneSeed:
      return run_one(options);
    case Mode::kManySeeds:
      for (std::uint64_t i = 0; i < options.seeds; ++i) {
        const std::uint64_t number = options.first + i;
        seeds.push_back(options.theme ? themed_seed(*options.theme, number) : mixed_seed(number));
      }
      std::printf("numbers %" PRIu64 " to %" PRIu64 ", theme %s\n", options.first,
                  options.first + options.seeds - 1,
                  options.theme ? theme_name(*options.theme) : "mixed");
      return run_many(program, options, seeds);
    case Mode::kSeedFiles:
      return read_files(options, seeds) ? run_many(program, options, seeds) : 2;
    case Mode::kMutants:
      if (!read_files(options, seeds)) return 2;
      return run_mutants({options.seeds_per_mutant, options.first, seeds, options.jobs,
                          options.mutant, options.not_hunted, options.results});
  }
  return 2;
}

}  // namespace
}  // namespace mrc::dst

int main(int argc, char** argv) {
  const auto options = mrc::dst::parse_options(argc, argv);
  if (!options) {
    std::fputs(mrc::dst::kUsage, stderr);
    return 2;
  }
  return mrc::dst::run(argv[0], *options);
}
