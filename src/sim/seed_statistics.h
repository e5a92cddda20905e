// The same run with several seeds in a few numbers: means with confidence intervals, and the worst.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/report.h"

namespace mrc::sim {

// The value that Student's t exceeds in either direction with a probability of 5 % in all.
double student_t95(std::size_t degrees_of_freedom);

struct SeedValue {
  std::uint64_t seed = 0;
  double value = 0;
};

struct SeedStatistic {
  std::string name;  // key of the value in the JSON of a run
  bool higher_is_better = false;
  std::size_t count = 0;  // seeds that have such a value
  double mean = 0;
  double half_width = 0;  // of the 95 % confidence interval of the mean; 0 with one seed
  double worst = 0;
  std::uint64_t worst_seed = 0;
};

// `values` is not empty.
SeedStatistic statistic_of(std::string name, bool higher_is_better,
                           const std::vector<SeedValue>& values);

// Of everything that the reports of these runs, one per seed, have in common.
std::vector<SeedStatistic> statistics_over_seeds(const std::vector<const Report*>& reports);

}  // namespace mrc::sim
