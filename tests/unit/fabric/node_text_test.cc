#include "fabric/node_text.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "fabric/input_error.h"
#include "fabric_samples.h"

namespace mrc::fabric {
namespace {

const Topology& fabric_of_two_planes() {
  static const Topology topology(two_tier());  // 2 planes, 16 hosts, 4 T0, 4 T1
  return topology;
}

NodeSet parse(std::string_view text) { return parse_node_set(text, fabric_of_two_planes()); }

std::string objection(const std::function<void()>& action) {
  try {
    action();
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

std::string objection_to(std::string_view text) {
  return objection([text] { parse(text); });
}

TEST(NodeText, ADeviceIsAKindAndANumber) {
  const NodeSet set = parse("t1:3");
  EXPECT_EQ(set.kind, NodeKind::kT1);
  EXPECT_EQ(set.number, 3U);
  EXPECT_EQ(set.text, "t1:3");
  EXPECT_EQ(parse("host:15").kind, NodeKind::kHost);
  EXPECT_EQ(parse("t0:0").kind, NodeKind::kT0);
}

TEST(NodeText, ASetOfOneContainsThatDeviceInEveryPlane) {
  const NodeSet set = parse("t1:3");
  EXPECT_TRUE(set.contains({NodeKind::kT1, 0, 3}));
  EXPECT_TRUE(set.contains({NodeKind::kT1, 1, 3}));
  EXPECT_FALSE(set.contains({NodeKind::kT1, 0, 2}));
  EXPECT_FALSE(set.contains({NodeKind::kT0, 0, 3}));
}

TEST(NodeText, AStarContainsAllOfAKind) {
  const NodeSet set = parse("t0:*");
  EXPECT_FALSE(set.number.has_value());
  for (unsigned i = 0; i < 4; ++i)
    EXPECT_TRUE(set.contains({NodeKind::kT0, 0, i}));
  EXPECT_FALSE(set.contains({NodeKind::kHost, 0, 0}));
}

TEST(NodeText, WhatNamesNoDeviceIsRefused) {
  for (const char* text : {"", "t0", "3", "t3:0", "T0:1", " t0:1", "plane:0", ":1"}) {
    EXPECT_EQ(objection_to(text),
              quoted(text) + " names no device; write host:N, t0:N, t1:N or t2:N");
  }
}

TEST(NodeText, NumbersAreWholeAndOfTheFabric) {
  for (const char* text : {"t0:", "t0:x", "t0:-1", "t0:1.5", "t0:**", "t0:99999999999"})
    EXPECT_EQ(objection_to(text), quoted(text) + " needs a number or * behind the colon");
  EXPECT_EQ(objection_to("t0:4"), "there is no t0:4, the fabric has t0:0 to t0:3");
  EXPECT_EQ(objection_to("host:16"), "there is no host:16, the fabric has host:0 to host:15");
}

TEST(NodeText, AKindThatTheFabricLacksHasNoMembers) {
  EXPECT_EQ(objection_to("t2:0"), "there is no t2:0, the fabric has none");
  EXPECT_EQ(objection_to("t2:*"), "there is no t2:*, the fabric has none");
  EXPECT_EQ(parse_node_set("t2:8", Topology(three_tier())).number, 8U);
}

TEST(NodeText, APlaneIsANumberOrAllOfThem) {
  const Topology& topology = fabric_of_two_planes();
  EXPECT_EQ(parse_plane("plane:1", topology), 1U);
  EXPECT_EQ(parse_plane("plane:*", topology), std::nullopt);
  EXPECT_EQ(objection([&] { parse_plane("plane:2", topology); }),
            "there is no plane:2, the fabric has plane:0 to plane:1");
  EXPECT_EQ(objection([&] { parse_plane("t0:1", topology); }), "'t0:1' is no plane; write plane:N");
}

TEST(NodeText, DevicesAreCountedPerPlane) {
  const TopologySpec spec = three_tier();
  EXPECT_EQ(node_count(spec, NodeKind::kHost), 24U);
  EXPECT_EQ(node_count(spec, NodeKind::kT0), 6U);
  EXPECT_EQ(node_count(spec, NodeKind::kT1), 6U);
  EXPECT_EQ(node_count(spec, NodeKind::kT2), 9U);
}

}  // namespace
}  // namespace mrc::fabric
