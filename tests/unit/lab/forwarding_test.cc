// What switches and cables do to the bytes of a frame.
#include "lab/forwarding.h"

#include <gtest/gtest.h>

#include "lab_frames.h"
#include "seal/layout.h"
#include "wire/datagram_frame.h"

namespace mrc::lab::test {
namespace {

using fabric::Node;
using fabric::NodeKind;

class Forwarding : public ::testing::Test {
 protected:
  Step at(NodeKind kind, unsigned number, std::vector<std::byte>& frame, unsigned plane = 1) {
    return forward_frame(routing, Node{kind, static_cast<std::uint8_t>(plane), number}, frame);
  }

  fabric::Topology topology{small_fabric()};
  fabric::Routing routing{topology};
  TunnelPaths paths{routing};
  FramePool pool{64};
};

TEST_F(Forwarding, EachHopShiftsTheCarrierAndNamesTheNextLink) {
  std::vector<std::byte> frame =
      make_frame(routing, {.source = 1, .destination = 6, .path = {.plane = 1, .up = 2}});
  EXPECT_EQ(carrier_text(frame), "fc00:2:1000:8002:1001:102::");

  EXPECT_EQ(at(NodeKind::kT0, 0, frame).link, topology.t0_up(1, 0, 2));
  EXPECT_EQ(carrier_text(frame), "fc00:2:8002:1001:102::");
  EXPECT_EQ(at(NodeKind::kT1, 2, frame).link, topology.t1_down(1, 2, 1, 0));
  EXPECT_EQ(carrier_text(frame), "fc00:2:1001:102::");
  EXPECT_EQ(at(NodeKind::kT0, 1, frame).link, topology.host_down(1, 6));
  EXPECT_EQ(carrier_text(frame), "fc00:2:102::");

  const Parsed parsed = parse(frame);
  EXPECT_EQ(parsed.reason, DropReason::kNone);
  EXPECT_EQ(parsed.header.outer.hop_limit, 61);
  EXPECT_EQ(parsed.header.destination, fabric::host_address(0, 6));
}

TEST_F(Forwarding, WithinOneT0ThereIsOneHop) {
  std::vector<std::byte> frame =
      make_frame(routing, {.source = 1, .destination = 3, .path = {.plane = 1}});
  EXPECT_EQ(at(NodeKind::kT0, 0, frame).link, topology.host_down(1, 3));
  EXPECT_EQ(carrier_text(frame), "fc00:2:103::");
}

TEST_F(Forwarding, ThreeTiersTakeSixLinks) {
  fabric::TopologySpec spec = small_fabric();
  spec.pods = 2;
  spec.t0 = 4;
  spec.t1 = 4;
  spec.t2 = 4;
  const fabric::Topology deep(spec);
  const fabric::Routing routes(deep);
  const fabric::Path path{.plane = 0, .up = 1, .t2 = 1};
  std::vector<std::byte> frame = make_frame(routes, {.source = 0, .destination = 7, .path = path});
  const auto links = routes.links(0, 7, path);
  ASSERT_EQ(links.count, 6U);
  for (unsigned hop = 0; hop + 1 < links.count; ++hop) {
    const Node here = deep.describe(links.links[hop]).to;
    EXPECT_EQ(forward_frame(routes, here, frame).link, links.links[hop + 1]) << hop;
  }
}

TEST_F(Forwarding, DropsWhatIsNotMeantForTheSwitch) {
  const FrameSpec spec{.source = 1, .destination = 6, .path = {.plane = 1, .up = 2}};
  for (const auto& [kind, number, plane] :
       {std::tuple{NodeKind::kT0, 1U, 1U}, {NodeKind::kT1, 2U, 1U}, {NodeKind::kT0, 0U, 0U}}) {
    std::vector<std::byte> frame = make_frame(routing, spec);
    const Step step = at(kind, number, frame, plane);
    EXPECT_EQ(step.link, fabric::kNoLink);
    EXPECT_EQ(step.cause, DropCause::kNoRoute);
  }
}

TEST_F(Forwarding, DropsWhatNamesNoNeighbour) {
  wire::FrameHeader header =
      header_of(routing, {.source = 1, .destination = 6, .path = {.plane = 1, .up = 2}});
  // The second uSID is that of a T0, which no T0 is joined to.
  header.outer.carrier = wire::parse_address("fc00:2:1000:1001:102::").value();
  std::vector<std::byte> frame = make_frame(header, {});
  EXPECT_EQ(at(NodeKind::kT0, 0, frame).link, fabric::kNoLink);
  // Nothing follows the switch's own uSID.
  header.outer.carrier = wire::parse_address("fc00:2:1000::").value();
  frame = make_frame(header, {});
  EXPECT_EQ(at(NodeKind::kT0, 0, frame).link, fabric::kNoLink);
}

TEST_F(Forwarding, GoesOnWithTheSegmentOfTheRoutingHeader) {
  wire::FrameHeader header = header_of(routing, {.source = 1, .destination = 6});
  header.outer.carrier = wire::parse_address("fc00:2:1000::").value();
  header.outer.has_segment = true;
  header.outer.segment = {wire::parse_address("fc00:2:8003:1001:102::").value(), 1};
  std::vector<std::byte> frame = make_frame(header, {});
  EXPECT_EQ(at(NodeKind::kT0, 0, frame).link, topology.t0_up(1, 0, 3));
  EXPECT_EQ(carrier_text(frame), "fc00:2:8003:1001:102::");
  const Parsed parsed = parse(frame);
  EXPECT_EQ(parsed.reason, DropReason::kNone);
  EXPECT_EQ(parsed.header.outer.segment.left, 0);
}

TEST_F(Forwarding, DropsAtTheEndOfTheHopLimit) {
  wire::FrameHeader header =
      header_of(routing, {.source = 1, .destination = 6, .path = {.plane = 1, .up = 2}});
  header.outer.hop_limit = 1;
  std::vector<std::byte> frame = make_frame(header, {});
  EXPECT_EQ(at(NodeKind::kT0, 0, frame).cause, DropCause::kHopLimit);
}

TEST_F(Forwarding, SurvivesFramesOfEveryLength) {
  const std::vector<std::byte> whole =
      make_frame(routing, {.source = 1, .destination = 6, .path = {.plane = 1, .up = 2}});
  for (std::size_t length = 0; length < 140; ++length) {
    std::vector<std::byte> frame(whole.begin(),
                                 whole.begin() + static_cast<std::ptrdiff_t>(length));
    at(NodeKind::kT0, 0, frame);
    classify({}, frame);
    mark_congestion(frame);
    EXPECT_EQ(trim({}, frame, false) > length, false);
    corrupt(frame, 12'345);
    DropCause cause{};
    const FrameId id = put(pool, frame);
    enter_tunnel(routing, paths, 1, 1, pool, id, cause);
    pool.give_back(id);
  }
}

TEST_F(Forwarding, PutsPlainFramesIntoATunnelThatStartsWhereTheyAre) {
  const FrameSpec spec{.source = 1, .destination = 6, .srv6 = false, .entropy = 0xABCD'C006};
  const FrameId id = put(pool, make_frame(routing, spec));
  DropCause cause{};
  ASSERT_TRUE(enter_tunnel(routing, paths, 1, 1, pool, id, cause));
  EXPECT_EQ(carrier_text(pool.bytes(id)), "fc00:2:1000:8001:1001:102::");
  const Parsed parsed = parse(pool.bytes(id));
  EXPECT_EQ(parsed.reason, DropReason::kNone);
  EXPECT_TRUE(parsed.header.srv6);
  EXPECT_EQ(parsed.header.entropy, spec.entropy);
  EXPECT_EQ(parsed.header.dscp, spec.dscp);
  EXPECT_EQ(parsed.header.ecn, wire::Ecn::kEct0);
  EXPECT_EQ(parsed.header.outer.source, fabric::host_address(0, 1));
}

TEST_F(Forwarding, AnEntropyValueOfThePlaneMeansItsPath) {
  for (std::uint16_t t1 = 0; t1 < 4; ++t1) {
    const std::uint32_t entropy = routing.entropy_of({.plane = 1, .up = t1});
    const FrameSpec spec{.source = 1, .destination = 6, .srv6 = false, .entropy = entropy};
    const FrameId id = put(pool, make_frame(routing, spec));
    DropCause cause{};
    ASSERT_TRUE(enter_tunnel(routing, paths, 1, 1, pool, id, cause));
    EXPECT_EQ(wire::parse_address(carrier_text(pool.bytes(id))).value(),
              routing.carrier(1, 6, {.plane = 1, .up = t1}));
    pool.give_back(id);
  }
}

TEST_F(Forwarding, NewEntropyValuesOfAPortGetThePathsInTurnAndKeepThem) {
  for (unsigned round = 0; round < 2; ++round)
    for (std::uint32_t i = 0; i < 8; ++i)
      EXPECT_EQ(paths.path_of(1, 3, 0xAAAA'C000 + 52 * i).up, (3 + i) % 4);
  EXPECT_EQ(paths.path_of(0, 3, 0xAAAA'C000 + 52).up, 3U);
}

TEST_F(Forwarding, HostsWithOneEntropyValueEachUseDifferentPaths) {
  for (unsigned host = 0; host < 8; ++host)
    EXPECT_EQ(paths.path_of(1, host, 0xAAAA'C000).up, host % 4);
}

TEST_F(Forwarding, RefusesFramesToNobody) {
  for (const char* address : {"fd00:1::9", "fd00:1::", "fd00:2::7:7", "2001:db8::1"}) {
    wire::FrameHeader header = header_of(routing, {.source = 1, .srv6 = false});
    header.destination = wire::parse_address(address).value();
    const FrameId id = put(pool, make_frame(header, {}));
    DropCause cause{};
    EXPECT_FALSE(enter_tunnel(routing, paths, 1, 1, pool, id, cause)) << address;
    EXPECT_EQ(cause, DropCause::kNoRoute);
    pool.give_back(id);
  }
}

TEST_F(Forwarding, CutsFramesForEveryProcessOfAHost) {
  for (const std::uint16_t port : {wire::kDefaultUdpPort, std::uint16_t{4'900}}) {
    std::vector<std::byte> frame = make_frame(
        routing, {.source = 1, .destination = 6, .path = {.plane = 1}, .udp_port = port});
    const std::size_t left = trim({}, frame, true);
    ASSERT_GT(left, 0U);
    const Parsed parsed = parse(std::span(frame).first(left), port);
    EXPECT_EQ(parsed.reason, DropReason::kNone);
    EXPECT_EQ(parsed.header.trim, wire::TrimMark::kTrimmedLastHop);
    EXPECT_TRUE(classify({}, frame).control);
  }
}

TEST_F(Forwarding, CutsSealedFramesBehindTheirSealHeader) {
  std::vector<std::byte> frame =
      make_frame(routing, {.source = 1, .destination = 6, .path = {.plane = 1}, .payload = 512});
  std::vector<std::byte> copy = frame;
  const std::size_t plain = trim({}, copy, true);
  wire::FrameHeader header;
  std::span<const std::byte> datagram;
  ASSERT_EQ(wire::find_datagram({}, frame, header, datagram), DropReason::kNone);
  const auto at = static_cast<std::size_t>(datagram.data() - frame.data());
  const auto sealed = std::span(frame).subspan(at);
  seal::set_transport_version(sealed, seal::kSealedVersion);
  const std::size_t left = trim({}, frame, true);
  EXPECT_EQ(left, plain + seal::kSealHeaderLength);
  // All lengths agree with what is left.
  ASSERT_EQ(wire::find_datagram({}, std::span(frame).first(left), header, datagram),
            DropReason::kNone);
  EXPECT_EQ(header.trim, wire::TrimMark::kTrimmedLastHop);
  EXPECT_EQ(datagram.size(), left - at);
  // Of what is no write only the BTH is in the clear, and nobody cuts it.
  std::vector<std::byte> other =
      make_frame(routing, {.source = 1, .destination = 6, .path = {.plane = 1}, .payload = 512});
  other[at] = static_cast<std::byte>(wire::Opcode::kSack);
  seal::set_transport_version(std::span(other).subspan(at), seal::kSealedVersion);
  EXPECT_EQ(trim({}, other, true), 0U);
}

TEST_F(Forwarding, DamageIsFoundByTheChecksumAndNotByTheSwitches) {
  for (std::uint64_t random = 0; random < 4'000; random += 7) {
    std::vector<std::byte> frame =
        make_frame(routing, {.source = 1, .destination = 6, .path = {.plane = 1}, .payload = 64});
    corrupt(frame, random);
    EXPECT_NE(parse(frame).reason, DropReason::kNone);
    EXPECT_EQ(at(NodeKind::kT0, 0, frame).link, topology.t0_up(1, 0, 0));
  }
}

}  // namespace
}  // namespace mrc::lab::test
