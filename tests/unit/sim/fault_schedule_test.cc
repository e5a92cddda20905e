#include "sim/fault_schedule.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fabric/input_error.h"
#include "sim/simulation.h"

namespace mrc::sim {
namespace {

constexpr Time kMicrosecond = 1'000'000;

SimConfig config(std::vector<std::string> faults = {}) {
  SimConfig config;
  config.topology.hosts = 16;
  config.topology.planes = 4;
  config.workload.name = "permutation";
  config.workload.bytes = 1'000'000;
  config.faults = std::move(faults);
  return config;
}

struct Outcome {
  std::uint64_t hash = 0;
  std::uint64_t events = 0;
  std::uint64_t retransmits = 0;
  bool complete = false;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome outcome(const SimResult& result) {
  return {result.trace_hash, result.events, result.hosts.retransmits, result.complete};
}

std::vector<std::string> texts(const Simulation& simulation) {
  std::vector<std::string> list;
  for (const fabric::Fault& fault : simulation.faults())
    list.push_back(fault.text);
  return list;
}

TEST(FaultSchedule, ARunInPiecesIsTheSameRun) {
  Simulation whole(config());
  Simulation pieces(config());
  std::uint64_t stops = 0;
  for (Time until = 0; pieces.advance(until); until += 333'333)
    ++stops;
  EXPECT_GT(stops, 20U);
  EXPECT_EQ(outcome(pieces.finish()), outcome(whole.run()));
}

TEST(FaultSchedule, ThePlanThatIsLeftGivesTheSameRun) {
  Simulation live(config({"t0:1/t1:1/plane:1 rate 50% @2us"}));
  live.advance(5 * kMicrosecond);
  live.add_fault("t0:0/t1:1/plane:0 down");
  live.add_fault("host:3/plane:2 flap 2us/3us for 1ms");
  live.advance(12 * kMicrosecond);
  live.end_fault(1);
  live.end_fault(2);
  live.end_fault(0);
  live.add_fault("t1:2/plane:3 loss 5%");
  while (live.advance(1'000 * kMicrosecond)) {
  }
  const Outcome seen = outcome(live.finish());

  Simulation again(config(texts(live)));
  EXPECT_EQ(outcome(again.run()), seen);
  EXPECT_GT(seen.retransmits, 0U);
  EXPECT_NE(seen, outcome(Simulation(config()).run()));
}

TEST(FaultSchedule, FaultsAreEnteredWithTheirTimes) {
  Simulation live(config());
  live.advance(5 * kMicrosecond);
  live.add_fault("t0:0/t1:1/plane:0 down");
  live.advance(9 * kMicrosecond);
  live.end_fault(0);
  EXPECT_EQ(texts(live), std::vector<std::string>{"t0:0/t1:1/plane:0 down @5001ns for 4000ns"});
}

TEST(FaultSchedule, WhatCannotBeIsRefusedAndChangesNothing) {
  Simulation live(config());
  live.advance(5 * kMicrosecond);
  EXPECT_THROW(live.add_fault("t0:0/t1:1/plane:0 down @20us"), fabric::InputError);
  EXPECT_THROW(live.add_fault("t0:99/t1:1/plane:0 down"), fabric::InputError);
  EXPECT_THROW(live.end_fault(0), fabric::InputError);
  live.add_fault("t0:0/t1:1/plane:0 down for 1us");
  live.advance(9 * kMicrosecond);
  EXPECT_THROW(live.end_fault(0), fabric::InputError);  // over by itself
  EXPECT_EQ(live.faults().size(), 1U);
}

}  // namespace
}  // namespace mrc::sim
