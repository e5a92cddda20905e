// How much memory an endpoint and its queue pairs take, counted at operator new.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "alloc/counting_new.h"
#include "core/endpoint.h"

namespace mrc::test {
namespace {

struct QpShape {
  std::uint32_t sends = 1;
  std::uint32_t receives = 1;
  std::uint16_t immediates = 1;
  std::uint8_t window_units = 1;
  unsigned evs = 1;
};

core::EvProfile make_profile(unsigned evs) {
  std::vector<core::EvEntry> entries;
  for (unsigned i = 0; i < evs; ++i)
    entries.push_back({0x1000 + i, PortId{1}});
  return core::EvProfile::create(entries).value();
}

core::EndpointConfig small_endpoint(unsigned max_qps) {
  return {.max_qps = max_qps,
          .max_peers = 1,
          .max_regions = 1,
          .event_capacity = 1,
          .control_capacity = 1,
          .endpoint_request_capacity = 1};
}

std::size_t endpoint_bytes(const core::EndpointConfig& config) {
  const std::size_t before = live_bytes();
  auto endpoint = core::Endpoint::create(config).value();
  return live_bytes() - before;
}

void bring_up(core::Endpoint& endpoint, const core::EvProfile& profile, QpNumber qp,
              const QpShape& shape) {
  ASSERT_TRUE(
      endpoint.create_qp({.number = qp, .max_sends = shape.sends, .max_receives = shape.receives})
          .ok());
  ASSERT_TRUE(endpoint.init_qp(qp, {.ev_profile = &profile}).ok());
  ASSERT_TRUE(endpoint
                  .ready_to_receive(qp, {.remote = {0, 9},
                                         .remote_qp = qp,
                                         .max_wimm_dest = shape.immediates,
                                         .mpr_dest = shape.window_units})
                  .ok());
  ASSERT_TRUE(endpoint.ready_to_send(0, qp, {.mpr = shape.window_units}).ok());
}

// A queue pair brought to RTS towards a peer that another one has made known.
std::size_t qp_bytes(const QpShape& shape) {
  const core::EvProfile profile = make_profile(shape.evs);
  auto endpoint = core::Endpoint::create(small_endpoint(2)).value();
  bring_up(*endpoint, profile, QpNumber{10}, {});
  const std::size_t before = live_bytes();
  bring_up(*endpoint, profile, QpNumber{11}, shape);
  return live_bytes() - before;
}

// What a queue pair makes the endpoint's tables hold.
std::size_t slot_bytes() {
  constexpr unsigned kMany = 4096;
  return (endpoint_bytes(small_endpoint(kMany)) - endpoint_bytes(small_endpoint(1))) / (kMany - 1);
}

// The sizes grow in proportion to the window, in whole units.
std::size_t window_bytes_per_1024() {
  return (qp_bytes({.window_units = 8}) - qp_bytes({})) * 8 / 7;
}

std::size_t idle_qp_bytes() { return slot_bytes() + qp_bytes({}) - window_bytes_per_1024() / 8; }

std::size_t path_set_bytes(unsigned evs) { return qp_bytes({.evs = evs}) - qp_bytes({}); }

using Lines = std::vector<std::pair<std::string, std::size_t>>;

Lines measure() {
  return {
      {"bytes per idle QP", idle_qp_bytes()},
      {"bytes per window of 1,024 PSNs", window_bytes_per_1024()},
      {"bytes per path set of 128 EVs", path_set_bytes(128)},
      {"bytes per send slot", (qp_bytes({.sends = 65}) - qp_bytes({})) / 64},
      {"bytes per receive slot", (qp_bytes({.receives = 65}) - qp_bytes({})) / 64},
      {"bytes per stashed immediate", (qp_bytes({.immediates = 65}) - qp_bytes({})) / 64},
      {"bytes per QP of 128 EVs, 1,024 PSNs, 128 sends, 128 receives",
       slot_bytes() + qp_bytes({128, 128, 128, 8, 128})},
      {"bytes per smallest endpoint", endpoint_bytes(small_endpoint(1))},
      {"bytes per default endpoint", endpoint_bytes({})},
  };
}

// For the summary at the end of the test run.
void write_result(const Lines& lines) {
  const char* folder = std::getenv("MRC_TEST_RESULTS");
  if (folder == nullptr) return;
  std::ofstream file(std::string(folder) + "/memory.json");
  file << "{\"name\": \"memory\", \"lines\": {";
  const char* separator = "";
  for (const auto& [label, bytes] : lines) {
    file << separator << '"' << label << "\": " << bytes;
    separator = ", ";
  }
  file << "}}\n";
  EXPECT_TRUE(file.good());
}

TEST(MemorySize, IsReported) {
  const Lines lines = measure();
  for (const auto& [label, bytes] : lines)
    std::printf("%-64s %7zu\n", label.c_str(), bytes);
  write_result(lines);
  for (const auto& [label, bytes] : lines)
    EXPECT_GT(bytes, 0U) << label;
}

// A simulation holds hundreds of thousands of queue pairs; the bounds leave a tenth to grow.
TEST(MemorySize, AnIdleQueuePairTakesAboutTwoKilobytes) { EXPECT_LE(idle_qp_bytes(), 2'200U); }

TEST(MemorySize, AWindowTakesOneSmallRecordPerPacket) {
  EXPECT_LE(window_bytes_per_1024(), 36U * 1024);
}

TEST(MemorySize, APathTakesLessThanFiftyBytes) { EXPECT_LE(path_set_bytes(128), 128U * 48); }

TEST(MemorySize, TheSmallestEndpointTakesAFewKilobytes) {
  EXPECT_LE(endpoint_bytes(small_endpoint(1)), 2'400U);
}

TEST(MemorySize, ADestroyedQueuePairGivesEverythingBack) {
  const core::EvProfile profile = make_profile(16);
  auto endpoint = core::Endpoint::create(small_endpoint(1)).value();
  const std::size_t before = live_bytes();
  bring_up(*endpoint, profile, QpNumber{10}, {.window_units = 8, .evs = 16});
  ASSERT_TRUE(endpoint->destroy_qp(QpNumber{10}).ok());
  EXPECT_EQ(live_bytes(), before);
}

}  // namespace
}  // namespace mrc::test
