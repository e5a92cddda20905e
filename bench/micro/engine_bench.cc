// The engine's packet paths, per data packet.
#include <benchmark/benchmark.h>

#include <ctime>

#include "world.h"

namespace mrc::bench {
namespace {

constexpr unsigned kBatch = 128;
constexpr WorldOptions kLong{.delay_steps = kBatch};
constexpr int kWarmUpRounds = 100;
constexpr unsigned kWarmUpSteps = 20'000;
constexpr unsigned kStepsPerIteration = 1'000;

// Time this thread spent running: what other programs of the machine do does not count.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

enum class Part { kSend, kReceive, kSettle, kAll };

// One round in three parts; returns seconds per packet of the part asked for.
double timed_round(World& world, Part part) {
  const double send_from = thread_seconds();
  const unsigned sent = world.send(kBatch);
  const double send_to = thread_seconds();
  world.order_data();
  const double receive_from = thread_seconds();
  const unsigned received = world.receive();
  const double receive_to = thread_seconds();
  world.order_answers();
  const double settle_from = thread_seconds();
  const unsigned settled = world.settle();
  const double settle_to = thread_seconds();
  switch (part) {
    case Part::kSend:
      return (send_to - send_from) / sent;
    case Part::kReceive:
      return (receive_to - receive_from) / received;
    case Part::kSettle:
      return (settle_to - settle_from) / settled;
    case Part::kAll:
      return ((send_to - send_from) + (receive_to - receive_from) + (settle_to - settle_from)) /
             received;
  }
  return 0;
}

// An iteration is a whole round; its time is that of one packet in the part of interest.
void batches(benchmark::State& state, const WorldOptions& options, Part part) {
  World world(options);
  for (int i = 0; i < kWarmUpRounds; ++i)
    timed_round(world, part);
  for (auto _ : state)
    state.SetIterationTime(timed_round(world, part));
  if (!world.healthy()) state.SkipWithError("the transfer did not run as meant");
}

// Iteration times are those of single packets, so a little of it is many rounds.
constexpr double kMinSeconds = 0.0005;

void send_path(benchmark::State& state) { batches(state, kLong, Part::kSend); }
void receive_in_order(benchmark::State& state) {
  batches(state, {.delay_steps = kBatch, .sprayed = false}, Part::kReceive);
}
void receive_sprayed(benchmark::State& state) { batches(state, kLong, Part::kReceive); }
void sack_handling(benchmark::State& state) { batches(state, kLong, Part::kSettle); }
void all_three(benchmark::State& state) { batches(state, kLong, Part::kAll); }
BENCHMARK(send_path)->UseManualTime()->MinTime(kMinSeconds);
BENCHMARK(receive_in_order)->UseManualTime()->MinTime(kMinSeconds);
BENCHMARK(receive_sprayed)->UseManualTime()->MinTime(kMinSeconds);
BENCHMARK(sack_handling)->UseManualTime()->MinTime(kMinSeconds);
BENCHMARK(all_three)->UseManualTime()->MinTime(kMinSeconds);

// Send, receive, answer and settle, interleaved as in a real endpoint. Includes the hand-over. An
// iteration is many steps; its time is that of one data packet.
void end_to_end(benchmark::State& state, const WorldOptions& options) {
  World world(options);
  world.run_steps(kWarmUpSteps);
  for (auto _ : state) {
    const double from = thread_seconds();
    const std::uint64_t packets = world.run_steps(kStepsPerIteration);
    state.SetIterationTime((thread_seconds() - from) / static_cast<double>(packets));
  }
  if (!world.healthy()) state.SkipWithError("the transfer did not run as meant");
}

#define MRC_END_TO_END(name, options) \
  BENCHMARK_CAPTURE(end_to_end, name, options)->UseManualTime()->MinTime(kMinSeconds)
MRC_END_TO_END(messages_of_1_mib, (WorldOptions{}));
MRC_END_TO_END(long_round_trip, kLong);
MRC_END_TO_END(messages_of_4_kib, (WorldOptions{.message_bytes = 4096}));
MRC_END_TO_END(sack_per_16_kib, (WorldOptions{.sack_threshold_bytes = 16384}));
MRC_END_TO_END(evs_1024, (WorldOptions{.evs = 1024}));
MRC_END_TO_END(qps_64, (WorldOptions{.qps = 64}));
MRC_END_TO_END(one_percent_lost, (WorldOptions{.lose_every = 100}));

}  // namespace
}  // namespace mrc::bench
