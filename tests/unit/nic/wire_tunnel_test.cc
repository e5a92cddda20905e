#include "nic/io/wire/wire_tunnel.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "node/config.h"

namespace mrc::nic {
namespace {

node::DeviceConfig device() {
  const node::ConfigResult result = node::parse_config(R"([device.mrc0]
backend = "wire"
plane = [{ address = "fd00:1::1/64", wire = "/a", usid_block = "fc00:1::/32" },
         { address = "fd00:2::1/64", wire = "/b", usid_block = "fc00:2::/32" }]
srv6_route = [{ to = "fd00:1::/64", usids = "1000:8000*4:1001:100" },
              { to = "fd00:1::2/128", usids = "1000:101" },
              { to = "fd00:1::3/128", usids = "1000:8000*6:1002/2:100" }]
)",
                                                       "f.toml");
  EXPECT_EQ(result.error, "");
  return result.devices.at(0);
}

std::string carrier(const WireTunnel& tunnel, unsigned port, const char* gid,
                    std::uint32_t entropy) {
  wire::IpAddress found;
  if (!tunnel.find_carrier(static_cast<PortId>(port), wire::parse_address(gid).value(), entropy,
                           found)) {
    return "none";
  }
  return std::string(wire::format_address(found).view());
}

TEST(WireTunnel, TheLongestPrefixWinsAndThePlaneGivesTheBlock) {
  const WireTunnel tunnel(device());
  EXPECT_EQ(carrier(tunnel, 1, "fd00:1::2", 0x1234'5678), "fc00:1:1000:101::");
  EXPECT_EQ(carrier(tunnel, 2, "fd00:1::2", 0x1234'5678), "fc00:2:1000:101::");
  EXPECT_EQ(carrier(tunnel, 2, "fd00:1::9", 0x0002'0000), "fc00:2:1000:8000:1001:100::");
  EXPECT_EQ(carrier(tunnel, 1, "fd00:7::2", 1), "none");
}

TEST(WireTunnel, AnEntropyValueOfTheFabricNamesItsPath) {
  const WireTunnel tunnel(device());
  for (unsigned t1 = 0; t1 < 4; ++t1) {
    EXPECT_EQ(carrier(tunnel, 2, "fd00:1::9", 0x0002'0000 + t1),
              "fc00:2:1000:800" + std::to_string(t1) + ":1001:100::");
  }
}

TEST(WireTunnel, AUsidThatFollowsTheChoiceIsItsRemainder) {
  const WireTunnel tunnel(device());
  for (unsigned way = 0; way < 6; ++way) {
    EXPECT_EQ(
        carrier(tunnel, 1, "fd00:1::3", 0x0001'0000 + way),
        "fc00:1:1000:800" + std::to_string(way) + ":100" + std::to_string(2 + way % 2) + ":100::");
  }
}

TEST(WireTunnel, OtherEntropyValuesUseEveryPathOnceAndKeepTheirs) {
  WireTunnel tunnel(device());
  // All the same modulo four.
  const std::uint32_t values[] = {0x7777'C000, 0x1111'C004, 0x2222'C008, 0x3333'C00C};
  for (const std::uint32_t value : values)
    tunnel.prepare(PortId{1}, value);
  std::set<std::string> paths;
  for (const std::uint32_t value : values) {
    tunnel.prepare(PortId{1}, value);
    paths.insert(carrier(tunnel, 1, "fd00:1::9", value));
    EXPECT_EQ(carrier(tunnel, 1, "fd00:1::9", value), carrier(tunnel, 1, "fd00:1::9", value));
  }
  EXPECT_EQ(paths.size(), 4U);
}

TEST(WireTunnel, ADeviceWithoutRoutesSendsPlainFrames) {
  node::DeviceConfig config = device();
  config.srv6_routes.clear();
  EXPECT_EQ(carrier(WireTunnel(config), 1, "fd00:1::2", 1), "none");
}

}  // namespace
}  // namespace mrc::nic
