#include "lab/netns_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "fabric/input_error.h"
#include "lab/host_config.h"
#include "node/config.h"

namespace mrc::lab {
namespace {

fabric::TopologySpec fabric_of(unsigned planes) {
  fabric::TopologySpec spec;
  spec.planes = planes;
  spec.hosts = 4;
  spec.t0 = 2;
  spec.t1 = 3;
  spec.host_link.bits_per_second = 100'000'000;
  return spec;
}

struct Fixture {
  fabric::Topology topology{fabric_of(2)};
  fabric::Routing routing{topology};
  NetnsPlan plan{routing, "x.", SwitchKind::kKernel};

  fabric::LinkId link(const std::string& name) const {
    for (std::uint32_t i = 0; i < topology.link_count(); ++i)
      if (link_name(topology, fabric::LinkId{i}) == name) return fabric::LinkId{i};
    ADD_FAILURE() << name;
    return fabric::kNoLink;
  }
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(NetnsPlan, ACableIsCutAtItsT0) {
  const Fixture f;
  for (const char* const name : {"t0:1>t1:2/plane:1", "t1:2>t0:1/plane:1"}) {
    const CableEnd end = f.plan.home_end(f.link(name));
    EXPECT_EQ(end.name_space, "x.p1-t0-1");
    EXPECT_EQ(end.port, "swp5");  // behind two hosts
  }
  EXPECT_TRUE(f.plan.leaves_home(f.link("t0:1>t1:2/plane:1")));
  EXPECT_FALSE(f.plan.leaves_home(f.link("t1:2>t0:1/plane:1")));
  const CableEnd host = f.plan.home_end(f.link("host:3>t0:1/plane:0"));
  EXPECT_EQ(host.name_space, "x.p0-t0-1");
  EXPECT_EQ(host.port, "swp2");
  EXPECT_EQ(f.plan.sending_end(f.link("host:3>t0:1/plane:0")).port, "nic0");
}

TEST(NetnsPlan, EveryDeviceAndCableIsMadeOnce) {
  const Fixture f;
  const std::string text = f.plan.creation();
  EXPECT_EQ(count(text, "netns add "), 4U + 1U + 2U * (2 + 3));
  // Cables of hosts and between switches, one to mgmt for each host, and sr0 of each switch.
  EXPECT_EQ(count(text, "type veth"), 2U * (4 + 2 * 3) + 4U + 2U * (2 + 3));
  const NetnsPlan ours(f.routing, "x.", SwitchKind::kNamespace);
  EXPECT_EQ(count(ours.creation(), "netns add "), 4U + 1U + 1U);
  EXPECT_EQ(count(ours.creation(), "type veth"), 2U * 4 + 4U);
}

TEST(NetnsPlan, APortThatComesBackGetsItsPartOfTheExportedTable) {
  const Fixture f;
  EXPECT_EQ(f.plan.port_setup({"x.p1-t0-1", "swp5"}),
            "addr replace fe80::1001/64 dev swp5 nodad\n"
            "route replace fc00:2:8002::/48 via fe80::8002 dev swp5  # t1:2/plane:1\n");
}

TEST(NetnsPlan, FabricsOfThreeTiersAreRefused) {
  fabric::TopologySpec spec = fabric_of(1);
  spec.t0 = 4;
  spec.t1 = 4;
  spec.pods = 2;
  spec.t2 = 2;
  const fabric::Topology topology(spec);
  const fabric::Routing routing(topology);
  EXPECT_THROW(NetnsPlan(routing, "x.", SwitchKind::kKernel), fabric::InputError);
}

TEST(HostConfig, OfANamespaceReadsAsADeviceWithRoutesToAllHosts) {
  const Fixture f;
  const Directory directory("/tmp/base", "name");
  const std::string text = host_config(f.routing, directory, {SwitchKind::kKernel}, 1);
  const node::ConfigResult result = node::parse_config(text, "mrc.toml");
  ASSERT_EQ(result.error, "");
  const node::DeviceConfig& device = result.devices.at(0);
  ASSERT_EQ(device.planes.size(), 2U);
  EXPECT_EQ(device.planes[1].interface, "nic1");
  EXPECT_EQ(device.planes[1].next_hop_mac, f.plan.gateway_mac(1, 1));
  EXPECT_EQ(device.planes[1].usid_block, f.routing.block_of(1));
  ASSERT_EQ(device.srv6_routes.size(), 4U);
  EXPECT_EQ(device.srv6_routes[0].choices, 1U);
  EXPECT_EQ(device.srv6_routes[3].choices, 3U);
}

// Without it windows of devices stand for networks that drop, and overrun the queues of the lab.
TEST(HostConfig, SaysWhetherTheSwitchesTrim) {
  const Fixture f;
  const Directory directory("/tmp/base", "name");
  for (const bool trim : {true, false}) {
    const node::ConfigResult result = node::parse_config(
        host_config(f.routing, directory, {SwitchKind::kProcess, trim}, 1), "mrc.toml");
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(result.devices.at(0).trimming, trim);
  }
}

// Devices that choose their paths know what each crosses; where they cannot, the lab chooses.
TEST(HostConfig, OfALabOfProcessesHasRoutesWhereOneChoiceMakesThePath) {
  const Directory directory("/tmp/base", "name");
  const auto routes = [&](const fabric::TopologySpec& spec) {
    const fabric::Topology topology(spec);
    const fabric::Routing routing(topology);
    const node::ConfigResult result =
        node::parse_config(host_config(routing, directory, {SwitchKind::kProcess}, 1), "mrc.toml");
    EXPECT_EQ(result.error, "");
    return result.devices.at(0).srv6_routes.size();
  };
  EXPECT_EQ(routes({.planes = 2, .hosts = 4, .t0 = 2, .t1 = 4}), 4U);
  EXPECT_EQ(routes({.planes = 1, .hosts = 4, .t0 = 2, .t1 = kMaxEvsPerPort + 1}), 0U);
  EXPECT_EQ(routes({.planes = 1, .hosts = 8, .t0 = 4, .t1 = 4, .pods = 2, .t2 = 2}), 0U);
}

}  // namespace
}  // namespace mrc::lab
