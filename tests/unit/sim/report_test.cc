#include "sim/report.h"

#include <gtest/gtest.h>

#include <numeric>

#include "sim/report_samples.h"
#include "sim/simulation.h"

namespace mrc::sim {
namespace {

Report report_of(const SimConfig& config) {
  Simulation simulation(config);
  SimResult result = simulation.run();
  return make_report(config, simulation.topology(), simulation.workload(), simulation.faults(),
                     std::move(result));
}

SimConfig small_config(const std::string& workload) {
  SimConfig config;
  config.topology = {.planes = 2, .hosts = 16, .t0 = 4, .t1 = 4};
  config.workload.name = workload;
  config.workload.bytes = 1'000'000;
  return config;
}

TEST(Distribution, TakesTheSmallestValueThatEnoughDoNotExceed) {
  std::vector<double> values(200);
  std::iota(values.rbegin(), values.rend(), 1);
  const Distribution d = distribution(values);
  EXPECT_DOUBLE_EQ(d.mean, 100.5);
  EXPECT_DOUBLE_EQ(d.p50, 100);
  EXPECT_DOUBLE_EQ(d.p99, 198);
  EXPECT_DOUBLE_EQ(d.max, 200);
}

TEST(Distribution, OfOneValueIsThatValue) {
  const Distribution d = distribution({7});
  EXPECT_DOUBLE_EQ(d.mean, 7);
  EXPECT_DOUBLE_EQ(d.p50, 7);
  EXPECT_DOUBLE_EQ(d.p99, 7);
  EXPECT_DOUBLE_EQ(d.max, 7);
}

TEST(Distribution, OfNothingIsZero) { EXPECT_DOUBLE_EQ(distribution({}).max, 0); }

TEST(Report, OfOneFlowIsIdeal) {
  const Report report = report_of(small_config("pair"));
  EXPECT_EQ(report.flows, 1u);
  EXPECT_EQ(report.bytes, 1'000'000u);
  EXPECT_NEAR(report.ratio_max, 1, 0.01);
  EXPECT_NEAR(report.goodput_gbps, 8'000 / report.fct_us.max, 1e-6);
  EXPECT_FALSE(report.victim);
  EXPECT_FALSE(report.has_down_fault);
  EXPECT_FALSE(report.result.dip.valid);
}

TEST(Report, KeepsTheVictimApart) {
  SimConfig config = small_config("incast");
  config.workload.senders = 7;
  config.workload.victim = true;
  const Report report = report_of(config);
  ASSERT_TRUE(report.victim);
  EXPECT_EQ(report.flows, 8u);
  EXPECT_NEAR(report.victim->ratio, report.victim->fct_us / report.victim->alone_us, 1e-9);
  EXPECT_LT(report.victim->fct_us, report.fct_us.p50);
  EXPECT_GT(report.ratio_max, 4);
}

TEST(Report, SeesTheGoodputThatAFaultCosts) {
  SimConfig config = small_config("pair");
  config.workload.bytes = 8'000'000;
  config.faults = {"host:0/plane:0 down @30us for 40us"};
  const Report report = report_of(config);
  EXPECT_TRUE(report.has_down_fault);
  ASSERT_TRUE(report.result.dip.valid);
  EXPECT_GT(report.result.dip.depth, 0.4);
  EXPECT_EQ(report.faults, config.faults);
  EXPECT_EQ(report.fault_starts, std::vector<Time>{30'000'000});
}

TEST(Report, HasNoDipWithoutALinkThatWentDown) {
  SimConfig config = small_config("pair");
  config.faults = {"t1:0/plane:0 rate 50% @10us"};
  const Report report = report_of(config);
  EXPECT_FALSE(report.has_down_fault);
  EXPECT_FALSE(report.result.dip.valid);
}

TEST(Report, CountsBandwidthOfCollectives) {
  const Report report = report_of(small_config("ring-all-reduce"));
  ASSERT_TRUE(report.collective);
  EXPECT_NEAR(report.collective->algorithm_gbps, 8'000 / report.finish_us, 0.01);
  EXPECT_NEAR(report.collective->bus_gbps, report.collective->algorithm_gbps * 2 * 15 / 16, 0.01);
}

TEST(Samples, DoNotChangeTheRun) {
  SimConfig config = small_config("incast");
  config.loss = 0.01;
  Simulation plain(config);
  const SimResult expected = plain.run();
  Simulation sampled(config);
  SampleRecorder recorder(sampled, 100'000);
  const SimResult result = sampled.run();
  EXPECT_EQ(result.trace_hash, expected.trace_hash);
  EXPECT_EQ(result.events, expected.events);
  EXPECT_EQ(result.finished_at, expected.finished_at);
  EXPECT_FALSE(recorder.take().samples.empty());
}

TEST(Samples, ShowQueuesWindowsAndPaths) {
  SimConfig config = small_config("incast");
  Simulation simulation(config);
  SampleRecorder recorder(simulation, 1'000'000);
  simulation.run();
  const SampleSeries series = recorder.take();
  ASSERT_EQ(series.rows.size(), 12u);
  EXPECT_EQ(series.rows.front(), "t0:0 to t1");
  EXPECT_EQ(series.rows[8], "t0:0 to host");
  std::uint32_t deepest = 0;
  std::uint32_t at_sink = 0;
  for (std::size_t i = 0; i < series.samples.size(); ++i) {
    const Sample& s = series.samples[i];
    EXPECT_EQ(s.at, static_cast<Time>(i + 1) * series.period);
    deepest = std::max(deepest, s.deepest_queue_bytes);
    at_sink = std::max(at_sink, s.row_bytes[8]);
  }
  EXPECT_GT(at_sink, 10'000u);
  EXPECT_EQ(deepest, at_sink);
  const HostGauges& early = series.samples.at(5).senders;
  EXPECT_EQ(early.connections, 8u);
  EXPECT_GT(early.window_bytes, 0u);
  EXPECT_GT(early.in_flight_bytes, 0u);
  EXPECT_GT(early.good_evs, 0u);
}

TEST(Samples, BecomeFewerAndWiderWhenThereAreTooMany) {
  const SimConfig config = small_config("incast");
  Simulation simulation(config);
  SampleRecorder recorder(simulation, 100'000);
  const SimResult result = simulation.run();
  const SampleSeries series = recorder.take();
  EXPECT_EQ(series.period, 200'000);
  EXPECT_LT(series.samples.size(), SampleRecorder::kMaxSamples);
  EXPECT_EQ(static_cast<Time>(series.samples.size()), result.finished_at / series.period);
  for (std::size_t i = 0; i < series.samples.size(); ++i)
    EXPECT_EQ(series.samples[i].at, static_cast<Time>(i + 1) * series.period);
}

}  // namespace
}  // namespace mrc::sim
