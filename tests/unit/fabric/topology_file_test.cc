#include "fabric/topology_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/input_error.h"
#include "fabric/presets.h"

namespace mrc::fabric {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TopologySpec parse(std::string_view text) { return parse_topology(text, "net.toml"); }

std::string objection(std::string_view text) {
  try {
    parse(text);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(TopologyFile, SetsEveryNumberOfATopology) {
  const TopologySpec spec = parse(
      "planes = 2\nhosts = 24\nt0 = 6\nt1 = 6\npods = 2\nt2 = 9\n"
      "gbps = 100\nuplink_gbps = 200\ncore_gbps = 12.5\n"
      "delay_us = 1\nuplink_delay_us = 0.5\ncore_delay_us = 2.25\n");
  EXPECT_EQ(spec.planes, 2u);
  EXPECT_EQ(spec.hosts, 24u);
  EXPECT_EQ(spec.t0, 6u);
  EXPECT_EQ(spec.t1, 6u);
  EXPECT_EQ(spec.pods, 2u);
  EXPECT_EQ(spec.t2, 9u);
  EXPECT_EQ(spec.host_link, (LinkClass{100'000'000'000, 1'000'000}));
  EXPECT_EQ(spec.t0_t1_link, (LinkClass{200'000'000'000, 500'000}));
  EXPECT_EQ(spec.t1_t2_link, (LinkClass{12'500'000'000, 2'250'000}));
}

TEST(TopologyFile, AnEmptyFileIsTheDefaultFabric) { EXPECT_EQ(parse(""), TopologySpec{}); }

TEST(TopologyFile, StartsFromAPresetWhereverThatStands) {
  TopologySpec expected = find_preset("anchor-128").spec;
  expected.planes = 4;
  EXPECT_EQ(parse("planes = 4\npreset = \"anchor-128\""), expected);
  EXPECT_EQ(parse("preset = \"anchor-128\"\nplanes = 4"), expected);
}

TEST(TopologyFile, WorksOutHostsOrT0s) {
  EXPECT_EQ(parse("hosts = 64\nhosts_per_t0 = 16").t0, 4u);
  EXPECT_EQ(parse("t0 = 8\nhosts_per_t0 = 16").hosts, 128u);
  EXPECT_THAT(objection("t0 = 8\nhosts_per_t0 = 16\nhosts = 128"), HasSubstr("not all three"));
  EXPECT_THAT(objection("hosts = 10\nhosts_per_t0 = 4"), HasSubstr("T0s of 4"));
  EXPECT_THAT(objection("hosts_per_t0 = 0"), HasSubstr("above 0"));
  EXPECT_THAT(objection("t0 = 1000000\nhosts_per_t0 = 1000000"), HasSubstr("too many hosts"));
}

TEST(TopologyFile, OversubscriptionSetsTheT1sOrTheirRate) {
  const std::string base = "hosts = 64\nt0 = 4\ngbps = 100\n";
  EXPECT_EQ(parse(base + "oversubscription = 2").t1, 8u);
  EXPECT_EQ(parse(base + "oversubscription = 2\nuplink_gbps = 400").t1, 2u);
  EXPECT_EQ(parse(base + "oversubscription = 4\nt1 = 2").t0_t1_link.bits_per_second,
            200'000'000'000u);
  EXPECT_EQ(parse(base + "oversubscription = 2\npods = 2\nt2 = 8").t1, 16u);
  EXPECT_THAT(objection(base + "oversubscription = 3"), HasSubstr("no whole number"));
  EXPECT_THAT(objection(base + "oversubscription = 1\nt1 = 2\nuplink_gbps = 1"),
              HasSubstr("give two of t1, uplink_gbps and oversubscription"));
  EXPECT_THAT(objection(base + "oversubscription = 0"), HasSubstr("must be above 0"));
}

TEST(TopologyFile, AnErrorNamesTheFileAndTheLine) {
  EXPECT_THAT(objection("hosts = 16\n\nhostz = 3\n"),
              StartsWith("net.toml:3: unknown key 'hostz'; known are preset, planes, hosts"));
  EXPECT_THAT(objection("hosts = 16\n[links]\nx = 1"),
              StartsWith("net.toml:2: unknown key 'links'"));
  EXPECT_THAT(objection("planes = 1\nhosts = \"many\""),
              StartsWith("net.toml:2: hosts must be a whole number"));
  EXPECT_THAT(objection("hosts = 1.5"), StartsWith("net.toml:1: hosts must be a whole number"));
  EXPECT_THAT(objection("hosts = -1"), StartsWith("net.toml:1: hosts must be"));
  EXPECT_THAT(objection("gbps = true"), StartsWith("net.toml:1: gbps must be a number"));
  EXPECT_THAT(objection("\npreset = \"huge\""), StartsWith("net.toml:2: there is no preset"));
  EXPECT_THAT(objection("preset = 5"), StartsWith("net.toml:1: preset must be a name"));
  EXPECT_THAT(objection("hosts = 16\nhosts = 32"), StartsWith("net.toml:2: "));
  EXPECT_THAT(objection("hosts = "), StartsWith("net.toml:1: "));
  EXPECT_THAT(objection("hosts = 16\n[="), StartsWith("net.toml:2: "));
  EXPECT_THAT(objection("# h\u00F4tes\nh\u00F4tes = 1"), StartsWith("net.toml:2: only comments"));
  for (const char* text : {"hosts = \"a\nb\"", "\"a\\nb\" = 1", "preset = \"a\\nb\""})
    EXPECT_EQ(objection(text).find('\n'), std::string::npos) << text;
}

TEST(TopologyFile, AFabricThatCannotBeBuiltIsRefused) {
  EXPECT_THAT(objection("hosts = 17"),
              StartsWith("net.toml: topology: 17 hosts cannot be spread evenly"));
  EXPECT_THAT(objection("gbps = 1e300"), HasSubstr("gbps must be above 0 and below a million"));
  EXPECT_THAT(objection("gbps = nan"), HasSubstr("gbps must be above 0"));
  EXPECT_THAT(objection("gbps = 100000"), HasSubstr("link rate"));
  EXPECT_THAT(objection("oversubscription = 2\nt0 = 0"), HasSubstr("at least one T0"));
  EXPECT_THAT(objection("oversubscription = 2\nt1 = 0"), HasSubstr("at least one T1"));
}

TEST(TopologyFile, AFileThatIsNotThereCannotBeRead) {
  EXPECT_THROW(load_topology("/nonexistent/net.toml"), InputError);
  EXPECT_THROW(load_topology("/"), InputError);
}

TEST(TopologyFile, ATopologyIsAPresetOrAFile) {
  EXPECT_EQ(find_topology(""), TopologySpec{});
  EXPECT_EQ(find_topology("anchor-128"), find_preset("anchor-128").spec);
  const auto objection_to = [](const std::string& name) {
    try {
      find_topology(name);
      return std::string();
    } catch (const InputError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(objection_to("anchor-129"), HasSubstr("no preset 'anchor-129'"));
  EXPECT_EQ(objection_to("./anchor-128"), "./anchor-128: cannot be read");
  EXPECT_EQ(objection_to("anchor.toml"), "anchor.toml: cannot be read");
}

}  // namespace
}  // namespace mrc::fabric
