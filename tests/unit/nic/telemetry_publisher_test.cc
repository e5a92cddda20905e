// What a device tells in its page is what it tells its own program.
#include "nic/telemetry_publisher.h"

#include "device_udp_fixture.h"
#include "node/telemetry_reader.h"

namespace mrc::nic::test {
namespace {

constexpr std::size_t kMessage = 256 * 1024;
constexpr unsigned kMessages = 20;

class DeviceTelemetry : public ::testing::Test {
 protected:
  explicit DeviceTelemetry(unsigned threads = 1) : threads_(threads) {}
  void SetUp() override {
    open(a, 1);
    open(b, 2);
    a.make_qp();
    b.make_qp();
    connect(a, b);
  }
  void open(Side& side, unsigned host) {
    node::DeviceConfig config = private_device(4, host);
    config.name = "udp" + std::to_string(host);
    config.directory = scratch / config.name;
    config.threads = threads_;
    config.telemetry.directory = scratch.path();
    std::string error;
    side.device = Device::open(config, error);
    ASSERT_NE(side.device, nullptr) << error;
  }
  void transfer() {
    Arena from(*a.device, a.domain, kMessage);
    Arena to(*b.device, b.domain, kMessage);
    const Buffer bytes = from.buffer(0, kMessage);
    for (unsigned i = 0; i < kMessages; ++i) {
      ASSERT_EQ(a.post({.id = i,
                        .buffers = {&bytes, 1},
                        .remote_address = to.address(),
                        .remote_key = to.keys().remote}),
                0);
      ASSERT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
    }
  }
  // Reads until `done` is content with the page of the device.
  template <typename Done>
  bool until(const std::string& device, Done done) {
    return eventually([&] {
      const auto listing = node::read_telemetry({.directory = scratch.path(), .device = device});
      if (listing.readings.size() != 1) return false;
      body = listing.readings[0].body;
      return done(body);
    });
  }

  TemporaryDirectory scratch;
  Side a;
  Side b;
  node::TelemetryBody body;

 private:
  unsigned threads_;
};

TEST_F(DeviceTelemetry, NumbersAreThoseOfTheProgram) {
  transfer();
  // Done only when all answers to it have been counted at both ends.
  QpTotals own;
  ASSERT_TRUE(until("udp1", [&](const node::TelemetryBody& page) {
    return a.qp->totals(own) == 0 &&
           page.traffic.sacks_received == own.status.counters.sacks_received &&
           page.traffic.data_sent == own.status.counters.data_sent &&
           page.latencies.count() == kMessages;
  }));
  const core::QpCounters& counted = own.status.counters;
  EXPECT_EQ(body.traffic.messages_completed, kMessages);
  EXPECT_GE(body.traffic.bytes_sent, kMessages * kMessage);
  EXPECT_EQ(body.traffic.bytes_sent, counted.bytes_sent);
  EXPECT_EQ(body.traffic.retransmitted, counted.retransmitted);
  EXPECT_EQ(body.queue_pairs, 1U);
  ASSERT_EQ(body.listed_queue_pairs, 1U);
  const node::TelemetryQueuePair& listed = body.list[0];
  EXPECT_EQ(listed.number, static_cast<std::uint32_t>(a.qp->number()));
  EXPECT_EQ(listed.remote_number, static_cast<std::uint32_t>(b.qp->number()));
  EXPECT_EQ(listed.peer.address(), b.device->gid());
  EXPECT_EQ(listed.counters.bytes_sent, counted.bytes_sent);
  EXPECT_EQ(listed.paths, own.paths);
  EXPECT_GT(listed.round_trip_ns, 0U);
  EXPECT_GT(body.round_trips.count(), 0U);
  EXPECT_GT(body.latencies.sum_ns, 0U);
  EXPECT_EQ(body.failed_messages, 0U);
  EXPECT_GT(body.process.cpu_ns, 0U);
  ASSERT_EQ(body.engine_count, 1U);
  EXPECT_GT(body.engines[0].cpu_ns, 0U);

  const DeviceReport report = a.device->report();
  ASSERT_EQ(body.plane_count, report.ports.size());
  ASSERT_TRUE(until("udp2", [](const node::TelemetryBody& page) {
    return page.traffic.bytes_received == kMessages * kMessage;
  }));
}

TEST_F(DeviceTelemetry, PlanesShareOutWhatTheDeviceSent) {
  transfer();
  ASSERT_TRUE(until("udp1", [&](const node::TelemetryBody& page) {
    const DeviceReport report = a.device->report();
    bool same = page.plane_count == report.ports.size();
    for (std::size_t i = 0; same && i < report.ports.size(); ++i)
      same = page.planes[i].packets_sent == report.ports[i].counters.packets_sent &&
             page.planes[i].bytes_received == report.ports[i].counters.bytes_received;
    return same && page.planes[0].packets_sent > 0;
  }));
  std::uint32_t paths = 0;
  for (std::size_t i = 0; i < body.plane_count; ++i) {
    EXPECT_EQ(body.planes[i].enabled, 1U);
    EXPECT_EQ(body.planes[i].link_up, 1U);
    for (const std::uint32_t count : body.planes[i].paths)
      paths += count;
  }
  EXPECT_EQ(paths, 8U * 4U);
}

TEST_F(DeviceTelemetry, SumsGoOnWhenQueuePairsGo) {
  transfer();
  ASSERT_EQ(a.qp->to_reset(), 0);
  ASSERT_EQ(b.qp->to_reset(), 0);
  connect(a, b);
  transfer();
  a.qp.reset();
  ASSERT_TRUE(until("udp1", [](const node::TelemetryBody& page) {
    return page.queue_pairs == 0 && page.traffic.messages_completed == 2 * kMessages;
  }));
  EXPECT_GE(body.traffic.bytes_sent, 2 * kMessages * kMessage);
  EXPECT_EQ(body.listed_queue_pairs, 0U);
}

TEST_F(DeviceTelemetry, PortThatIsTurnedOffShows) {
  const auto set_ports = [&](PortMask ports) {
    ASSERT_EQ(a.device->node().update([&](node::NodeSnapshot& state) {
      state.ports_enabled = ports;
      return 0;
    }),
              0);
  };
  set_ports(PortMask::first(kMaxPorts).without(PortId{3}));
  ASSERT_TRUE(until("udp1", [](const auto& page) { return page.planes[2].link_changes == 1; }));
  EXPECT_EQ(body.planes[2].enabled, 0U);
  EXPECT_EQ(body.planes[1].enabled, 1U);
  set_ports(PortMask::first(kMaxPorts));
  ASSERT_TRUE(until("udp1", [](const auto& page) { return page.planes[2].link_changes == 2; }));
  EXPECT_EQ(body.planes[2].enabled, 1U);
  EXPECT_EQ(body.planes[1].link_changes, 0U);
}

TEST_F(DeviceTelemetry, PageGoesWithTheDevice) {
  ASSERT_TRUE(until("udp1", [](const auto&) { return true; }));
  a = {};
  EXPECT_TRUE(
      node::read_telemetry({.directory = scratch.path(), .device = "udp1"}).readings.empty());
}

class DeviceTelemetryThreads : public DeviceTelemetry {
 protected:
  DeviceTelemetryThreads() : DeviceTelemetry(3) {}
};

// More queue pairs than a page lists, over all engines.
TEST_F(DeviceTelemetryThreads, BusiestQueuePairsAreListed) {
  constexpr unsigned kMore = node::kTelemetryQueuePairs + 10;
  std::vector<Side> others(kMore);
  for (Side& side : others) {
    side.device = a.device;
    side.make_qp({}, 16);
  }
  ASSERT_TRUE(until("udp1", [&](const auto& page) { return page.queue_pairs == kMore + 1; }));
  EXPECT_EQ(body.listed_queue_pairs, node::kTelemetryQueuePairs);
  EXPECT_EQ(body.engine_count, 3U);
  EXPECT_EQ(body.engines[0].queue_pairs + body.engines[1].queue_pairs + body.engines[2].queue_pairs,
            kMore + 1);
  ASSERT_TRUE(eventually([&] {
    transfer();
    return until("udp1", [](const auto&) { return true; }) &&
           body.list[0].number == static_cast<std::uint32_t>(a.qp->number());
  }));
  EXPECT_GT(body.list[0].bytes_per_second, 0U);
  for (Side& side : others)
    side.qp.reset();
}

}  // namespace
}  // namespace mrc::nic::test
