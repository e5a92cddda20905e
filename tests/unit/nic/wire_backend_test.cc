#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>

#include "unit/nic/wire_fixture.h"
#include "wire/frame.h"

namespace mrc::nic::test {
namespace {

TEST(WireBackend, SpeaksTheDialectOfItsDevice) {
  node::DeviceConfig one = wire_device("dialect", 1, 1, true);
  node::DeviceConfig two = wire_device("dialect", 1, 2, false);
  one.dialect = two.dialect = wire::parse_dialect("card,first_msn=7").dialect;
  const auto a = must_open(one);
  const auto b = must_open(two);
  ASSERT_TRUE(
      settle({a.get(), b.get()}, [&] { return !(a->free_ports() & b->free_ports()).empty(); }));
  const Route route{.peer = {.gid = two.planes[0].address}, .entropy = 0x1234'5678};
  wire::Packet packet = write_packet(1, 64);
  const auto payload = pattern(64);
  packet.bth.destination = QpNumber{0x07'0123};  // of another process at the same port
  send_bytes(*a, route, packet, payload);
  packet.bth.destination = QpNumber{0x00'0123};
  send_bytes(*a, route, packet, payload);
  a->flush();
  Collector got;
  ASSERT_TRUE(collect(*b, got, 1));
  ASSERT_EQ(got.arrived.size(), 1U);
  EXPECT_TRUE(got.arrived[0].icrc_good);
  wire::Packet parsed;
  std::span<const std::byte> data;
  ASSERT_EQ(wire::parse_transport(got.arrived[0].transport, parsed, data), DropReason::kNone);
  EXPECT_EQ(static_cast<std::uint32_t>(parsed.bth.destination), 0x123U);
  EXPECT_EQ(std::get<wire::Write>(parsed.body).msn, 7);  // as it stands on the wire
}

TEST(WireBackend, CarriesFramesOnEveryCable) {
  for (const bool is_v4 : {false, true}) {
    const Cabled pair(is_v4 ? "both4" : "both6", 2, is_v4);
    const auto bytes = pattern(4096);
    for (const std::size_t length : {0U, 1U, 63U, 64U, 1000U, 4096U}) {
      for (unsigned port = 1; port <= 2; ++port) {
        const auto payload = std::span(bytes).first(length);
        const auto packet = write_packet(length, length);
        const std::uint32_t wish = 0x1234'5678;
        const std::uint32_t entropy = pair.a->prepare_path(PortId{1}, wish).value();
        EXPECT_EQ(entropy, is_v4 ? wish & 0xFFFF : wish);
        send_bytes(*pair.a, pair.to_b(port, entropy), packet, payload);
        pair.a->flush();
        Collector got;
        ASSERT_TRUE(collect(*pair.b, got, 1));
        ASSERT_EQ(got.arrived.size(), 1U);
        EXPECT_EQ(got.arrived[0].gid, pair.one.planes[0].address);
        EXPECT_EQ(static_cast<unsigned>(got.arrived[0].port), port);
        EXPECT_EQ(got.arrived[0].entropy, entropy);
        EXPECT_TRUE(got.arrived[0].icrc_good);
        wire::Packet parsed;
        std::span<const std::byte> data;
        ASSERT_EQ(wire::parse_transport(got.arrived[0].transport, parsed, data), DropReason::kNone);
        EXPECT_TRUE(std::ranges::equal(data, payload));
      }
    }
    EXPECT_EQ(pair.a->counters().send_refused, 0U);
  }
}

TEST(WireBackend, BuildsTheSrv6HeadersAnEvAsksFor) {
  const node::DeviceConfig config = wire_device("srv6", 1, 1, true);
  const auto backend = must_open(config);
  const os::Descriptor far = plug_in(cable_name("srv6", 0));
  ASSERT_TRUE(far.valid());
  ASSERT_TRUE(settle({backend.get()}, [&] { return !backend->link_up().empty(); }));

  const wire::IpAddress carrier = wire::ipv6_address(0xFC00'0001'1000'8000, 0x1001'0100'0000'0000);
  const wire::IpAddress segment = wire::ipv6_address(0xFC00'0001'2000'0000, 0);
  const wire::EvValue ev = wire::srv6_ev(carrier, segment);
  Route route{.peer = {.gid = wire::ipv6_address(0xFC00'0000'0000'0000, 2)}, .port = PortId{1}};
  route.entropy = 0xABCD'4321;
  route.srv6 = &ev;
  const auto bytes = pattern(777);
  send_bytes(*backend, route, write_packet(5, 777), bytes);
  backend->flush();

  std::vector<std::byte> frame(16'384);
  const ssize_t length = ::recv(far.get(), frame.data(), frame.size(), 0);
  ASSERT_GT(length, 0);
  frame.resize(static_cast<std::size_t>(length));
  wire::FrameHeader header;
  wire::Packet packet;
  std::span<const std::byte> payload;
  ASSERT_EQ(wire::parse_frame({}, frame, header, packet, payload), DropReason::kNone);
  EXPECT_TRUE(header.srv6);
  EXPECT_EQ(header.outer.carrier, carrier);
  EXPECT_TRUE(header.outer.has_segment);
  EXPECT_EQ(header.outer.segment.address, segment);
  EXPECT_EQ(header.entropy, 0xABCD'4321);
  EXPECT_EQ(header.source, config.planes[0].address);
  EXPECT_EQ(header.ecn, wire::Ecn::kEct0);
  EXPECT_TRUE(std::ranges::equal(payload, bytes));
}

TEST(WireBackend, FullCableIsNotFreeUntilTheFarEndReads) {
  const Cabled pair("full", 1);
  const auto bytes = pattern(4096);
  std::uint32_t sent = 0;
  while (!pair.a->free_ports().empty()) {
    ASSERT_LT(sent, 1'000'000U);
    send_bytes(*pair.a, pair.to_b(1, 7), write_packet(sent++, 4096), bytes);
    pair.a->flush();
  }
  EXPECT_EQ(pair.a->link_up(), PortMask::first(1));
  Collector got;
  while (got.arrived.size() < sent) {
    const std::size_t before = got.arrived.size();
    ASSERT_TRUE(collect(*pair.b, got, before + 1));
    pair.a->on_wake();
  }
  EXPECT_EQ(pair.a->free_ports(), PortMask::first(1));
  EXPECT_EQ(pair.a->counters().send_refused, 0U);
  for (std::uint32_t i = 0; i < sent; ++i) {
    wire::Packet parsed;
    std::span<const std::byte> data;
    ASSERT_EQ(wire::parse_transport(got.arrived[i].transport, parsed, data), DropReason::kNone);
    ASSERT_EQ(parsed.bth.psn.value(), i);
  }
}

TEST(WireBackend, ACutCableIsDownUntilTheFarEndIsBack) {
  Cabled pair("cut", 1);
  for (int round = 0; round < 3; ++round) {
    pair.a.reset();
    ASSERT_TRUE(settle({pair.b.get()}, [&] { return pair.b->link_up().empty(); }));
    const auto bytes = pattern(64);
    const Route nowhere{.peer = {.gid = pair.one.planes[0].address}, .port = PortId{1}};
    const std::uint64_t refused = pair.b->counters().send_refused;
    send_bytes(*pair.b, nowhere, write_packet(1, 64), bytes);
    pair.b->flush();
    EXPECT_EQ(pair.b->counters().send_refused, refused + 1);
    pair.a = must_open(pair.one);
    ASSERT_TRUE(settle({pair.a.get(), pair.b.get()},
                       [&] { return !pair.b->link_up().empty() && !pair.a->link_up().empty(); }));
  }
}

TEST(WireBackend, GarbageFramesAreDroppedAndCounted) {
  const node::DeviceConfig config = wire_device("garbage2", 1, 3, true, true);
  const auto backend = must_open(config);
  const os::Descriptor far = plug_in(cable_name("garbage2", 0));
  ASSERT_TRUE(far.valid());
  ASSERT_TRUE(settle({backend.get()}, [&] { return !backend->link_up().empty(); }));
  Collector got;
  for (std::size_t length = 1; length <= 300; ++length) {
    const auto bytes = pattern(length, static_cast<unsigned>(length));
    ASSERT_EQ(::send(far.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(length));
    ASSERT_TRUE(collect(*backend, got, length));
  }
  const auto huge = pattern(20'000);
  ASSERT_EQ(::send(far.get(), huge.data(), huge.size(), 0), 20'000);
  ASSERT_TRUE(collect(*backend, got, 301));
  EXPECT_EQ(got.dropped.size(), 301U);
  EXPECT_EQ(got.dropped.back(), DropReason::kTruncated);
}

TEST(WireBackend, ProcessesOfOneHostHaveNumbersAndTheirOwnPackets) {
  const Cabled pair("number", 1);
  EXPECT_EQ(pair.a->process_number(), 0U);
  EXPECT_EQ(pair.b->process_number(), 0U);
  auto second = must_open(pair.two);
  EXPECT_EQ(second->process_number(), 1U);
  const auto bytes = pattern(64);
  Route route = pair.to_b(1, 7);
  route.peer.process = 1;
  send_bytes(*pair.a, route, write_packet(1, 64), bytes);
  route.peer.process = 0;
  send_bytes(*pair.a, route, write_packet(2, 64), bytes);
  pair.a->flush();
  Collector got;
  ASSERT_TRUE(collect(*pair.b, got, 1));
  ASSERT_EQ(got.arrived.size(), 1U);
  EXPECT_TRUE(got.dropped.empty());  // the other process's packet is none of ours
  second.reset();
  EXPECT_EQ(must_open(pair.two)->process_number(), 1U);
}

TEST(WireBackend, SaysWhatIsWrongWithACable) {
  node::DeviceConfig config = wire_device("bad", 1, 1, true);
  config.planes[0].wire_path = "listen:/no/such/folder/cable";
  EXPECT_EQ(open_backend(config).error,
            "mrc0: listen:/no/such/folder/cable: No such file or directory");
  config.planes[0].wire_path = std::string(200, 'x');
  EXPECT_TRUE(open_backend(config).error.starts_with("mrc0: the path of a cable has 1 to 107"));
  config.planes[0].wire_path = "listen:" + cable_name("bad", 0);
  const auto first = must_open(config);
  EXPECT_TRUE(open_backend(config).error.ends_with("Address already in use"));
}

}  // namespace
}  // namespace mrc::nic::test
