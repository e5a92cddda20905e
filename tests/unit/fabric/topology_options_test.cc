#include "fabric/topology_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <string_view>

#include "fabric/input_error.h"
#include "fabric_samples.h"

namespace mrc::fabric {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kGigabit = 1'000'000'000;

// 64 hosts on 4 T0s, 16 uplinks of 100 Gb/s each.
TopologySpec base() {
  const LinkClass link{.bits_per_second = 100 * kGigabit};
  return {.planes = 2,
          .hosts = 64,
          .t0 = 4,
          .t1 = 16,
          .host_link = link,
          .t0_t1_link = link,
          .t1_t2_link = link};
}

std::string objection(const TopologyOptions& options) {
  try {
    resolve_topology(base(), options);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(TopologyOptions, WithoutAnyTheBaseStaysAsItIs) {
  EXPECT_EQ(resolve_topology(base(), {}), base());
}

TEST(TopologyOptions, GivenNumbersTakeThePlaceOfTheBase) {
  const TopologySpec spec =
      resolve_topology(base(), {.planes = 4, .hosts = 24, .t0 = 6, .t1 = 6, .pods = 2, .t2 = 9});
  EXPECT_EQ(spec.planes, 4U);
  EXPECT_EQ(spec.hosts, 24U);
  EXPECT_EQ(spec.t0, 6U);
  EXPECT_EQ(spec.t1, 6U);
  EXPECT_EQ(spec.pods, 2U);
  EXPECT_EQ(spec.t2, 9U);
  EXPECT_EQ(spec.host_link, base().host_link);
}

TEST(TopologyOptions, ARateIsThatOfAllLinksUnlessSaidOtherwise) {
  const TopologySpec spec =
      resolve_topology(base(), {.gbps = 200, .uplink_gbps = 400, .core_gbps = 12.5});
  EXPECT_EQ(spec.host_link.bits_per_second, 200 * kGigabit);
  EXPECT_EQ(spec.t0_t1_link.bits_per_second, 400 * kGigabit);
  EXPECT_EQ(spec.t1_t2_link.bits_per_second, 12'500'000'000U);
  EXPECT_EQ(resolve_topology(base(), {.uplink_gbps = 400}).t1_t2_link.bits_per_second,
            400 * kGigabit);
}

TEST(TopologyOptions, SoIsADelay) {
  const TopologySpec spec =
      resolve_topology(base(), {.delay_us = 2, .uplink_delay_us = 3, .core_delay_us = 0.5});
  EXPECT_EQ(spec.host_link.delay_ps, 2'000'000);
  EXPECT_EQ(spec.t0_t1_link.delay_ps, 3'000'000);
  EXPECT_EQ(spec.t1_t2_link.delay_ps, 500'000);
}

TEST(TopologyOptions, TwoOfHostsT0AndHostsPerT0GiveTheThird) {
  EXPECT_EQ(resolve_topology(base(), {.hosts = 128, .hosts_per_t0 = 16}).t0, 8U);
  EXPECT_EQ(resolve_topology(base(), {.hosts_per_t0 = 16, .t0 = 8}).hosts, 128U);
  EXPECT_EQ(resolve_topology(base(), {.hosts_per_t0 = 32}).t0, 2U);
  EXPECT_THAT(objection({.hosts = 128, .hosts_per_t0 = 16, .t0 = 8}), HasSubstr("not all three"));
  EXPECT_THAT(objection({.hosts_per_t0 = 3}), HasSubstr("64 hosts cannot be split into T0s of 3"));
  EXPECT_THAT(objection({.hosts_per_t0 = 0}), HasSubstr("hosts_per_t0 must be above 0"));
  EXPECT_THAT(objection({.hosts_per_t0 = 1U << 20, .t0 = 1U << 20}), HasSubstr("too many hosts"));
}

// 16 hosts of 100 Gb/s on a T0 at 2:1 need 800 Gb/s upwards.
TEST(TopologyOptions, OversubscriptionGivesTheT1s) {
  EXPECT_EQ(resolve_topology(base(), {.oversubscription = 2}).t1, 8U);
  EXPECT_EQ(resolve_topology(base(), {.uplink_gbps = 400, .oversubscription = 2}).t1, 2U);
  EXPECT_EQ(resolve_topology(base(), {.pods = 2, .t2 = 8, .oversubscription = 2}).t1, 16U);
  EXPECT_THAT(objection({.oversubscription = 3}), HasSubstr("no whole number"));
  EXPECT_THAT(objection({.oversubscription = 100}), HasSubstr("no whole number"));
}

TEST(TopologyOptions, OrTheRateOfTheUplinksWhereTheT1sAreGiven) {
  const TopologySpec spec = resolve_topology(base(), {.t1 = 2, .oversubscription = 4});
  EXPECT_EQ(spec.t1, 2U);
  EXPECT_EQ(spec.t0_t1_link.bits_per_second, 200 * kGigabit);
  EXPECT_THAT(objection({.t1 = 2, .uplink_gbps = 100, .oversubscription = 4}),
              HasSubstr("give two of t1, uplink_gbps and oversubscription"));
}

TEST(TopologyOptions, NumbersWithoutSenseAreRefusedByTheirName) {
  for (const TopologyKey<double>& key : topology_number_keys()) {
    for (const double value : {0.0, -1.0, 1e6, std::nan("")}) {
      TopologyOptions options;
      options.*key.member = value;
      EXPECT_THAT(objection(options), HasSubstr(std::string(key.name) + " must be above 0"));
    }
  }
}

TEST(TopologyOptions, WhatCannotBeBuiltIsRefused) {
  EXPECT_THAT(objection({.hosts = 17}), HasSubstr("cannot be spread evenly"));
  EXPECT_THAT(objection({.planes = 17}), HasSubstr("planes must be 1 to 16"));
  EXPECT_THAT(objection({.t0 = 0, .oversubscription = 2}), HasSubstr("at least one T0"));
  EXPECT_THAT(objection({.t1 = 0, .oversubscription = 2}), HasSubstr("at least one T1"));
}

TEST(TopologyOptions, EveryKeyHasANameHelpAndAPlaceOfItsOwn) {
  std::set<std::string_view> names;
  TopologyOptions options;
  for (const TopologyKey<unsigned>& key : topology_count_keys()) {
    EXPECT_FALSE((options.*key.member).has_value()) << key.name;
    options.*key.member = 1;
    names.insert(key.name);
    EXPECT_GT(std::string_view(key.help).size(), 10U);
  }
  for (const TopologyKey<double>& key : topology_number_keys()) {
    EXPECT_FALSE((options.*key.member).has_value()) << key.name;
    options.*key.member = 1.0;
    names.insert(key.name);
    EXPECT_GT(std::string_view(key.help).size(), 10U);
  }
  EXPECT_EQ(names.size(), topology_count_keys().size() + topology_number_keys().size());
}

}  // namespace
}  // namespace mrc::fabric
