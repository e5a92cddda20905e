#include "commands/perf/waits.h"

#include <gtest/gtest.h>

namespace mrc::tool::perf {
namespace {

constexpr std::uint32_t kMtu = 4096;
constexpr std::int64_t kMillisecond = 1'000'000;

openmrc_qp_counters busy() {
  openmrc_qp_counters counters{};
  counters.messages_outstanding = 3;
  counters.paths_good = 60;
  counters.paths_assumed_bad = 4;
  counters.window_bytes = 100'000;
  counters.window_used_bytes = 50'000;
  return counters;
}

TEST(Waits, WhatIsMissingFirstIsNamed) {
  openmrc_qp_counters counters = busy();
  EXPECT_EQ(wait_of(counters, kMtu), Wait::kNothing);
  counters.window_used_bytes = 100'000 - kMtu;
  EXPECT_EQ(wait_of(counters, kMtu), Wait::kNothing);
  ++counters.window_used_bytes;
  EXPECT_EQ(wait_of(counters, kMtu), Wait::kWindow);
  counters.packets_to_resend = 1;
  EXPECT_EQ(wait_of(counters, kMtu), Wait::kResend);
  counters.paths_good = 0;
  EXPECT_EQ(wait_of(counters, kMtu), Wait::kPath);
  counters.paths_skipped = 1;
  EXPECT_EQ(wait_of(counters, kMtu), Wait::kResend);
  counters.messages_outstanding = 0;
  EXPECT_EQ(wait_of(counters, kMtu), Wait::kProgram);
}

TEST(Waits, LooksOnceAMillisecondAtAllInTurn) {
  std::vector<unsigned> asked(10);
  WaitSampler sampler(10, kMtu, [&](unsigned qp) {
    ++asked[qp];
    openmrc_qp_counters counters = busy();
    counters.retransmitted = 5 * asked[qp];
    counters.round_trip_ns = qp == 7 ? 9'000 : 1'000;
    if (qp == 3) counters.messages_outstanding = 0;
    return counters;
  });
  for (std::int64_t now = kMillisecond; now <= 5 * kMillisecond; now += kMillisecond / 10)
    sampler.look(now);
  const Waits waits = sampler.take();
  EXPECT_EQ(waits.looks, 20u);  // 5 times 4
  EXPECT_EQ(asked, std::vector<unsigned>(10, 1 + 2 + 1));
  EXPECT_DOUBLE_EQ(waits.share(Wait::kProgram), 0.1);
  EXPECT_DOUBLE_EQ(waits.share(Wait::kNothing), 0.9);
  EXPECT_EQ(waits.sums.retransmitted, 10u * 15);  // since the first
  EXPECT_DOUBLE_EQ(waits.round_trip_us, 1.8);
  EXPECT_DOUBLE_EQ(waits.most_round_trip_us, 9);
  EXPECT_EQ(waits.paths, 64u);
  EXPECT_EQ(waits.most_bad_paths, 4u);
}

}  // namespace
}  // namespace mrc::tool::perf
