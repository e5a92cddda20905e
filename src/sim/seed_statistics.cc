#include "sim/seed_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/assert.h"

namespace mrc::sim {
namespace {

struct Measure {
  const char* name;
  bool higher_is_better;
  std::optional<double> (*value)(const Report&);
};

std::optional<double> count(std::uint64_t number) { return static_cast<double>(number); }

constexpr Measure kMeasures[] = {
    {"fct_us.mean", false, [](const Report& r) { return std::optional(r.fct_us.mean); }},
    {"fct_us.p99", false, [](const Report& r) { return std::optional(r.fct_us.p99); }},
    {"fct_us.max", false, [](const Report& r) { return std::optional(r.fct_us.max); }},
    {"ratio_max", false, [](const Report& r) { return std::optional(r.ratio_max); }},
    {"finish_us", false, [](const Report& r) { return std::optional(r.finish_us); }},
    {"ratio_bound", false, [](const Report& r) { return std::optional(r.ratio_bound); }},
    {"goodput_gbps", true, [](const Report& r) { return std::optional(r.goodput_gbps); }},
    {"bus_gbps", true,
     [](const Report& r) {
       return r.collective ? std::optional(r.collective->bus_gbps) : std::nullopt;
     }},
    {"victim.ratio", false,
     [](const Report& r) { return r.victim ? std::optional(r.victim->ratio) : std::nullopt; }},
    {"fairness.jain", true,
     [](const Report& r) { return r.fairness ? std::optional(r.fairness->jain) : std::nullopt; }},
    {"fairness.share_min", true,
     [](const Report& r) {
       return r.fairness ? std::optional(*std::min_element(r.fairness->share.begin(),
                                                           r.fairness->share.end()))
                         : std::nullopt;
     }},
    {"failed", false, [](const Report& r) { return count(r.result.failed); }},
    {"retransmits", false, [](const Report& r) { return count(r.result.hosts.retransmits); }},
    {"trims", false, [](const Report& r) { return count(r.result.network.trims); }},
    {"marks", false, [](const Report& r) { return count(r.result.network.marks); }},
    {"pauses", false, [](const Report& r) { return count(r.result.network.pauses); }},
    {"drops", false, [](const Report& r) { return count(r.result.network.drops()); }},
};

}  // namespace

double student_t95(std::size_t degrees_of_freedom) {
  MRC_ASSERT(degrees_of_freedom > 0);
  constexpr std::array kTable = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                 2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                 2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                 2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
  if (degrees_of_freedom <= kTable.size()) return kTable[degrees_of_freedom - 1];
  // The first terms of its expansion around the normal distribution, exact to three digits here.
  constexpr double kNormal = 1.959964;
  constexpr double kSquare = kNormal * kNormal;
  const auto n = static_cast<double>(degrees_of_freedom);
  return kNormal *
         (1 + (kSquare + 1) / (4 * n) + (5 * kSquare * kSquare + 16 * kSquare + 3) / (96 * n * n));
}

SeedStatistic statistic_of(std::string name, bool higher_is_better,
                           const std::vector<SeedValue>& values) {
  MRC_ASSERT(!values.empty());
  SeedStatistic s{.name = std::move(name),
                  .higher_is_better = higher_is_better,
                  .count = values.size(),
                  .worst = values.front().value,
                  .worst_seed = values.front().seed};
  const auto n = static_cast<double>(values.size());
  for (const SeedValue& v : values) {
    s.mean += v.value / n;
    if (higher_is_better ? v.value >= s.worst : v.value <= s.worst) continue;
    s.worst = v.value;
    s.worst_seed = v.seed;
  }
  if (values.size() == 1) return s;
  double squares = 0;
  for (const SeedValue& v : values)
    squares += (v.value - s.mean) * (v.value - s.mean);
  s.half_width = student_t95(values.size() - 1) * std::sqrt(squares / (n - 1) / n);
  return s;
}

std::vector<SeedStatistic> statistics_over_seeds(const std::vector<const Report*>& reports) {
  std::vector<SeedStatistic> statistics;
  for (const Measure& measure : kMeasures) {
    std::vector<SeedValue> values;
    for (const Report* report : reports)
      if (const std::optional<double> value = measure.value(*report))
        values.push_back({report->config.seed, *value});
    if (!values.empty())
      statistics.push_back(statistic_of(measure.name, measure.higher_is_better, values));
  }
  return statistics;
}

}  // namespace mrc::sim
