#include "fabric/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/input_error.h"
#include "fabric_samples.h"

namespace mrc::fabric {
namespace {

using testing::HasSubstr;

// Lines that begin with `start`, blanks before it left out of account.
std::vector<std::string> lines_with(const std::string& text, std::string_view start) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::size_t first = std::min(text.find_first_not_of(' ', at), end);
    if (std::string_view(text).substr(first, end - first).starts_with(start))
      lines.push_back(text.substr(first, end - first));
    at = end + 1;
  }
  return lines;
}

class Export : public testing::Test {
 protected:
  std::string text_of(std::string_view node, const ExportOptions& options) const {
    return export_switch(routing_, parse_switch(node, topology_), options);
  }
  static ExportOptions options_of(ExportFormat format) {
    return {.format = format, .ports = default_port_names(format)};
  }

  Topology topology_{two_tier()};  // 2 planes, 16 hosts, 4 T0, 4 T1
  Routing routing_{topology_};
};

TEST_F(Export, LinuxGetsItsOwnUsidAndARouteToEveryNeighbour) {
  const std::string text = text_of("t0:3/plane:1", options_of(ExportFormat::kLinux));
  EXPECT_THAT(text, testing::StartsWith("#!/bin/sh\n"));
  EXPECT_THAT(
      lines_with(text, "ip -6 route replace fc00:2:1003::/48"),
      testing::ElementsAre("ip -6 route replace fc00:2:1003::/48 encap seg6local action End "
                           "flavors next-csid lblen 32 nflen 16 dev swp1"));
  EXPECT_EQ(lines_with(text, "ip -6 route replace").size(), 1u + 4 + 4);
  EXPECT_THAT(text, HasSubstr("ip -6 route replace fc00:2:102::/48 via fe80::102 dev swp3  # "
                              "host:14/plane:1\n"));
  EXPECT_THAT(text, HasSubstr("ip -6 route replace fc00:2:8003::/48 via fe80::8003 dev swp8  # "
                              "t1:3/plane:1\n"));
  EXPECT_EQ(lines_with(text, "ip -6 addr replace fe80::1003/64 dev swp").size(), 8u);
}

TEST_F(Export, ALinuxSwitchMayKeepItsUsidOnADeviceOfItsOwn) {
  ExportOptions options = options_of(ExportFormat::kLinux);
  options.sid_device = "sr0";
  const std::string text = text_of("t1:0/plane:0", options);
  EXPECT_THAT(text, HasSubstr("ip link add sr0 type dummy\n"));
  EXPECT_THAT(text, HasSubstr("nflen 16 dev sr0\n"));
}

TEST_F(Export, FrrGetsStaticRoutesAndAStaticSid) {
  const std::string text = text_of("t1:2/plane:0", options_of(ExportFormat::kFrr));
  EXPECT_THAT(lines_with(text, "ipv6 route"),
              testing::ElementsAre("ipv6 route fc00:1:1000::/48 fe80::1000 swp1",
                                   "ipv6 route fc00:1:1001::/48 fe80::1001 swp2",
                                   "ipv6 route fc00:1:1002::/48 fe80::1002 swp3",
                                   "ipv6 route fc00:1:1003::/48 fe80::1003 swp4"));
  EXPECT_THAT(text, HasSubstr("   sid fc00:1:8002::/48 locator MRC behavior uN\n"));
  EXPECT_THAT(text, HasSubstr("prefix fc00:1:8002::/48 block-len 32 node-len 16 func-bits 0\n"));
  EXPECT_EQ(lines_with(text, "ipv6 address fe80::8002/64").size(), 4u);
}

TEST_F(Export, SonicGetsLocatorSidInterfacesAndRoutes) {
  const std::string text = text_of("t1:2/plane:0", options_of(ExportFormat::kSonic));
  EXPECT_THAT(text, HasSubstr("\"MRC|fc00:1:8002::/48\": {\"action\": \"uN\""));
  EXPECT_THAT(text, HasSubstr("\"Ethernet3|fe80::8002/64\": {}\n"));
  EXPECT_THAT(text, HasSubstr("\"default|fc00:1:1001::/48\": {\"nexthop\": \"fe80::1001\", "
                              "\"ifname\": \"Ethernet1\"},\n"));
  EXPECT_EQ(lines_with(text, "\"default|").size(), 4u);
}

TEST_F(Export, Frr8LeavesTheSidToTheKernelAndTakesTheRoutes) {
  ExportOptions options = options_of(ExportFormat::kFrr8);
  options.sid_device = "sr0";
  const std::string text = text_of("t1:2/plane:0", options);
  EXPECT_THAT(lines_with(text, "!$ ip -6 route replace"),
              testing::ElementsAre("!$ ip -6 route replace fc00:1:8002::/48 encap seg6local action "
                                   "End flavors next-csid lblen 32 nflen 16 dev sr0"));
  EXPECT_EQ(lines_with(text, "ipv6 route").size(), 4u);
  EXPECT_THAT(text, testing::Not(HasSubstr("static-sids")));
}

TEST_F(Export, SonicGetsQueuesAndTrimming) {
  const std::string text = text_of("t0:2/plane:0", options_of(ExportFormat::kSonic));
  EXPECT_THAT(text, HasSubstr("\"Ethernet0\": {\"dscp_to_tc_map\": \"MRC\", \"tc_to_queue_map\": "
                              "\"MRC\", \"tc_to_dscp_map\": \"MRC_TRIMMED_LAST_HOP\"}"));
  EXPECT_THAT(text, HasSubstr("\"Ethernet7|3\": {\"scheduler\": \"MRC_DATA\", "
                              "\"wred_profile\": \"MRC_DATA\"}"));
  ExportOptions options = options_of(ExportFormat::kSonic);
  options.trims = false;
  EXPECT_THAT(text_of("t0:2/plane:0", options), testing::Not(HasSubstr("TRIM")));
}

TEST_F(Export, EachOfSeveralCablesHasARouteAndTheSwitchAUsidForIt) {
  const Topology topology({.planes = 1, .hosts = 4, .t0 = 2, .t1 = 2, .cables = 2});
  const Routing routing(topology);
  const auto text = [&](const char* node, ExportFormat format) {
    return export_switch(routing, parse_switch(node, topology), options_of(format));
  };
  const std::string linux_text = text("t0:1", ExportFormat::kLinux);
  EXPECT_EQ(lines_with(linux_text, "ip -6 route replace fc00:1:1002::/48 encap").size(), 1u);
  EXPECT_EQ(lines_with(linux_text, "ip -6 route replace fc00:1:1003::/48 encap").size(), 1u);
  EXPECT_THAT(linux_text, HasSubstr("fc00:1:8003::/48 via fe80::8002 dev swp6  # t1:1/plane:0\n"));
  EXPECT_EQ(lines_with(text("t1:0", ExportFormat::kFrr), "sid ").size(), 2u);
  EXPECT_THAT(text("t1:0", ExportFormat::kSonic),
              HasSubstr("\"MRC1|fc00:1:8001::/48\": {\"action\": \"uN\""));
}

TEST_F(Export, AT2IsExportedLikeEveryOtherSwitch) {
  const Topology topology(three_tier());
  const Routing routing(topology);
  const std::string text =
      export_switch(routing, parse_switch("t2:8", topology), options_of(ExportFormat::kFrr));
  EXPECT_THAT(lines_with(text, "ipv6 route"),
              testing::ElementsAre("ipv6 route fc00:1:8002::/48 fe80::8002 swp1",
                                   "ipv6 route fc00:1:8005::/48 fe80::8005 swp2"));
}

TEST_F(Export, PortsAreNamedAsAsked) {
  ExportOptions options = options_of(ExportFormat::kSonic);
  options.ports.step = 4;
  EXPECT_THAT(text_of("t1:2/plane:0", options), HasSubstr("\"ifname\": \"Ethernet12\""));
  options.ports = {"et-", 10, 2};
  EXPECT_THAT(text_of("t1:2/plane:0", options), HasSubstr("\"ifname\": \"et-16\""));
}

TEST_F(Export, NamesThatNoPortCanHaveAreRefused) {
  for (const char* prefix : {"", "a b", "x\"y", "$(rm)", "elevenchars"}) {
    EXPECT_THROW(check_export({.ports = {prefix, 0, 1}}), InputError) << prefix;
  }
  EXPECT_THROW(check_export({.sid_device = "sr;0"}), InputError);
  EXPECT_THROW(check_export({.ports = {"swp", 0, 0}}), InputError);
  EXPECT_THROW(check_export({.ports = {"swp", 10'000, 1}}), InputError);
  EXPECT_NO_THROW(check_export({}));
  EXPECT_NO_THROW(check_export({.ports = {"Ethernet", 0, 8}, .sid_device = "sr0"}));
}

TEST_F(Export, FilesAreNamedAfterTheSwitch) {
  EXPECT_EQ(export_file_name({NodeKind::kT0, 1, 3}, ExportFormat::kLinux), "plane1-t0-3.sh");
  EXPECT_EQ(export_file_name({NodeKind::kT0, 1, 3}, ExportFormat::kTc), "plane1-t0-3.tc.sh");
  EXPECT_EQ(export_file_name({NodeKind::kT0, 1, 3}, ExportFormat::kFrr8), "plane1-t0-3.frr8.conf");
  EXPECT_EQ(export_file_name({NodeKind::kT2, 0, 7}, ExportFormat::kFrr), "plane0-t2-7.conf");
  EXPECT_EQ(export_file_name({NodeKind::kT1, 0, 0}, ExportFormat::kSonic), "plane0-t1-0.json");
}

TEST_F(Export, ASwitchIsReadByItsName) {
  EXPECT_EQ(parse_switch("t1:2/plane:1", topology_), (Node{NodeKind::kT1, 1, 2}));
  EXPECT_EQ(parse_switch("t2:8", Topology(three_tier())), (Node{NodeKind::kT2, 0, 8}));
  for (const char* text : {"", "t1", "t1:", "t1:2", "t1:9/plane:0", "t1:2/plane:2", "t1:*/plane:0",
                           "t1:2/plane:*", "host:1/plane:0", "t1:2/t0:1", "t1:2/plane:0/x"})
    EXPECT_THROW(parse_switch(text, topology_), InputError) << text;
}

}  // namespace
}  // namespace mrc::fabric
