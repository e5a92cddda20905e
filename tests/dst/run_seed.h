// One seed from start to end.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "dst/attack.h"
#include "dst/fault.h"

namespace mrc::dst {

// Sums over seeds; plain data, so that it can live in memory shared between processes.
struct Totals {
  std::uint64_t seeds = 0;
  std::uint64_t rerun = 0;  // seeds run twice to compare their traces
  std::uint64_t packets = 0;
  std::uint64_t data_packets = 0;
  std::uint64_t retransmissions = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t completions = 0;
  std::uint64_t immediates = 0;
  std::uint64_t virtual_ns = 0;
  std::uint64_t drain_permille = 0;  // longest drain as a share of its bound
  std::uint64_t slowest_seed = 0;    // whose that is
  std::uint64_t combined_hash = 0;   // does not depend on the order of the seeds
  FaultCounts faults;
  AttackCounts attacks{};

  void add(const Totals& other);
  std::uint64_t fault_count() const;
};

struct SeedResult {
  bool ok = false;
  std::string reason;
  std::uint64_t hash = 0;
  Totals totals;
};

// Prints everything that happens to `log` unless it is null.
SeedResult run_seed(std::uint64_t seed, std::FILE* log);

// Runs some seeds twice and fails those whose two traces differ.
SeedResult run_seed_checked(std::uint64_t seed);

}  // namespace mrc::dst
