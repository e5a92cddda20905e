#include "dst/run_seed.h"

#include <algorithm>
#include <memory>

#include "dst/failure.h"
#include "dst/random.h"
#include "dst/world.h"

namespace mrc::dst {
namespace {

// One seed in so many is run twice.
constexpr std::uint64_t kRerunPeriod = 20;

Totals count(const World& world) {
  Totals totals;
  totals.seeds = 1;
  totals.packets = world.stage.trace.packets();
  totals.data_packets = world.checker.data_packets();
  totals.retransmissions = world.checker.retransmissions();
  totals.payload_bytes = world.checker.payload_bytes();
  totals.completions = world.checker.completions();
  totals.immediates = world.checker.immediates();
  totals.virtual_ns = static_cast<std::uint64_t>(world.stage.now);
  totals.combined_hash = mix64(world.stage.swarm.seed ^ world.stage.trace.hash());
  totals.faults = world.stage.counts;
  totals.attacks = world.stage.attacks;
  return totals;
}

}  // namespace

void Totals::add(const Totals& other) {
  seeds += other.seeds;
  rerun += other.rerun;
  packets += other.packets;
  data_packets += other.data_packets;
  retransmissions += other.retransmissions;
  payload_bytes += other.payload_bytes;
  completions += other.completions;
  immediates += other.immediates;
  virtual_ns += other.virtual_ns;
  if (other.drain_permille > drain_permille) {
    drain_permille = other.drain_permille;
    slowest_seed = other.slowest_seed;
  }
  combined_hash += other.combined_hash;
  for (std::size_t i = 0; i < kFaultCount; ++i) {
    faults[static_cast<Fault>(i)] += other.faults[static_cast<Fault>(i)];
  }
  for (std::size_t i = 0; i < kAttackCount; ++i)
    attacks[i] += other.attacks[i];
}

std::uint64_t Totals::fault_count() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kFaultCount; ++i)
    sum += faults[static_cast<Fault>(i)];
  return sum;
}

SeedResult run_seed(std::uint64_t seed, std::FILE* log) {
  SeedResult result;
  const auto world = std::make_unique<World>(seed, log);
  try {
    world->run();
    result.ok = true;
  } catch (const CheckFailed& failure) {
    result.reason = failure.what();
    world->stage.trace.say(world->stage.now, "FAILED: %s", failure.what());
  }
  result.hash = world->stage.trace.hash();
  result.totals = count(*world);
  if (result.ok) {
    result.totals.drain_permille =
        static_cast<std::uint64_t>(world->drain_ns * 1000 / world->drain_bound_ns);
    result.totals.slowest_seed = seed;
  }
  return result;
}

SeedResult run_seed_checked(std::uint64_t seed) {
  SeedResult result = run_seed(seed, nullptr);
  if (!result.ok || seed % kRerunPeriod != 0) return result;
  const SeedResult again = run_seed(seed, nullptr);
  result.totals.rerun = 1;
  if (again.hash != result.hash) {
    result.ok = false;
    result.reason = "not deterministic: a second run gave another trace";
  }
  return result;
}

}  // namespace mrc::dst
