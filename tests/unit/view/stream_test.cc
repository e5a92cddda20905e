#include "view/stream.h"

#include <gtest/gtest.h>

#include <array>

#include "sim/simulation.h"
#include "view/sim_source.h"

namespace mrc::view {
namespace {

fabric::TopologySpec small() {
  fabric::TopologySpec spec;
  spec.planes = 2;
  spec.hosts = 8;
  spec.t0 = 2;
  spec.t1 = 4;
  return spec;
}

std::string record(const sim::SimConfig& config, sim::SimResult& result) {
  sim::Simulation simulation(config);
  std::string text;
  SimSource source(simulation, {.filmed_hops = 100},
                   [&](const std::string& line) { text += line + "\n"; });
  result = simulation.run();
  source.finish(result);
  return text;
}

TEST(Geometry, DrawsASmallFabricAsItIs) {
  const fabric::Topology topology(small());
  const Geometry geometry(topology);
  EXPECT_EQ(geometry.cables().size(), 8U + 8U);
  EXPECT_EQ(geometry.lane_count(), topology.link_count());
  for (std::uint32_t i = 0; i < topology.link_count(); ++i) {
    const fabric::LinkId link{i};
    const auto lane = index(geometry.lane_of(link));
    EXPECT_EQ(lane ^ 1U, index(geometry.lane_of(topology.reverse(link))));
    EXPECT_EQ(lane & 1U,
              topology.describe(link).from.kind < topology.describe(link).to.kind ? 0U : 1U);
  }
}

TEST(Geometry, FoldsALargeFabricUntilItFits) {
  fabric::TopologySpec spec = small();
  spec.planes = 8;
  spec.hosts = 16'384;
  spec.t0 = 512;
  spec.t1 = 256;
  const Geometry geometry{fabric::Topology(spec)};
  std::uint32_t above = 0;
  std::uint64_t links = 0;
  for (const Geometry::Cable& cable : geometry.cables()) {
    above += cable.tier == fabric::LinkTier::kT0T1 ? 1 : 0;
    links += cable.links;
  }
  EXPECT_LE(above * 8, FoldLimits{}.cables);
  EXPECT_EQ(2 * links * 8, geometry.topology().link_count());
}

TEST(Stream, TellsOnlyWhatChanged) {
  const Geometry geometry{fabric::Topology(small())};
  StreamWriter writer(geometry);
  writer.header({});
  Frame frame;
  frame.lanes.resize(geometry.lane_count());
  frame.tallies.resize(geometry.lane_count());
  frame.lanes[3] = {.load_permille = 500, .queue_bytes = 70, .state = LaneState::kSlow};
  EXPECT_NE(writer.frame(frame).find("\"k\":1,\"l\":[3,500,70,1]"), std::string::npos);
  EXPECT_NE(writer.frame(frame).find("\"l\":[]"), std::string::npos);
  frame.lanes[3] = {};
  EXPECT_NE(writer.frame(frame).find("\"l\":[3,0,0,0]"), std::string::npos);
  frame.tallies[5] = {.marks = 1, .trims = 2, .drops = 3};
  EXPECT_NE(writer.frame(frame).find("\"l\":[],\"e\":[5,1,2,3]"), std::string::npos);
  EXPECT_EQ(writer.frame(frame).find("\"e\""), std::string::npos);
}

TEST(Stream, TellsPathsOfASenderByPlaneAndState) {
  StreamWriter writer({.lanes = 0, .write = [](JsonLine& line) { line.number("geometry", 1); }});
  EXPECT_NE(writer.header({.source = "host"}).find("\"geometry\":1"), std::string::npos);
  using Path = sim::SenderStatus::Path;
  const std::array senders = {sim::SenderStatus{
      .peer = 7,
      .paths = {Path{.plane = 0, .entropy = 4}, Path{.plane = 1, .entropy = 5},
                Path{.plane = 1, .entropy = 6, .state = core::EvState::kAssumedBad}}}};
  const std::string line = writer.senders(3, 1'000, senders);
  EXPECT_NE(line.find("{\"host\":3,\"t\":1000,\"senders\":[{\"peer\":7,"), std::string::npos);
  EXPECT_NE(line.find("\"planes\":[[1,0,0,0],[1,0,1,0]],\"bad\":[[1,6,2]]"), std::string::npos);
}

TEST(SimSource, TellsOfAHostWhosePathsTurnBad) {
  sim::SimConfig config;
  config.topology = small();
  config.workload.bytes = 2'000'000;
  config.faults = {"t0:0/t1:1/plane:1 down @5us"};
  sim::SimResult result;
  const std::string text = record(config, result);
  EXPECT_NE(text.find(",\"bad\":[[1,"), std::string::npos);
  EXPECT_EQ(text.find(",\"bad\":[[0,"), std::string::npos) << "plane 0 is sound";
}

TEST(Lane, IsDownOnlyWhenAllItsLinksAre) {
  fabric::TopologySpec spec = small();
  const fabric::Topology topology(spec);
  const Geometry folded(topology, {.hosts = 1, .cables = 1});
  const auto id = folded.lane_of(topology.t0_up(0, 0, 0));
  ASSERT_EQ(folded.cable_of(id).links, 8U);
  Lane lane{.state = LaneState::kDown};
  settle(lane, folded, id, {.links_down = 3});
  EXPECT_EQ(lane.state, LaneState::kPartlyDown);
  lane.state = LaneState::kDown;
  settle(lane, folded, id, {.links_down = 8});
  EXPECT_EQ(lane.state, LaneState::kDown);
}

TEST(SimSource, RecordsWithoutChangingTheRun) {
  sim::SimConfig config;
  config.topology = small();
  config.workload.bytes = 500'000;
  config.faults = {"t0:0/t1:1/plane:1 down @5us"};
  const sim::SimResult unseen = sim::Simulation(config).run();
  sim::SimResult seen;
  const std::string text = record(config, seen);
  EXPECT_EQ(seen.trace_hash, unseen.trace_hash);
  EXPECT_EQ(seen.events, unseen.events);
  EXPECT_EQ(parse_recording(text).problem, "");
  EXPECT_NE(text.find("[5000,1,\"t0:0/t1:1/plane:1 down @5us\"]"), std::string::npos);
}

TEST(Recording, IsRefusedWhenItIsNotWholeOrNotOurs) {
  const std::string whole =
      "{\"view\":1,\"source\":\"sim\"}\n{\"t\":1}\n{\"end\":2,\"t\":1,\"note\":\"\"}\n";
  EXPECT_EQ(parse_recording(whole).problem, "");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(parse_recording(whole.substr(0, size)).problem, "") << size;
  EXPECT_EQ(parse_recording("{\"view\":3,\"source\":\"sim\"}\n").problem,
            "is a recording of version 3; this program reads versions 1 to 2");
  EXPECT_EQ(parse_recording("{\"view\":1,\"x\":1}\n{\"end\":2,\"t\":1}\n").problem, "misses lines");
  EXPECT_EQ(parse_recording(whole + whole).problem, "goes on after its end");
  EXPECT_EQ(parse_recording("\x7f"
                            "ELF\n")
                .problem,
            "is no recording of mrc sim --record");
}

}  // namespace
}  // namespace mrc::view
