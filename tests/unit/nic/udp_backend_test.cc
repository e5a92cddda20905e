#include <gtest/gtest.h>

#include <algorithm>

#include "unit/nic/backend_fixture.h"

namespace mrc::nic::test {
namespace {

struct Pair {
  explicit Pair(unsigned planes = 4)
      : one(private_device(planes, 1)),
        two(private_device(planes, 2)),
        a(must_open(one)),
        b(must_open(two)) {}
  Route to_b(unsigned port, std::uint32_t entropy) const {
    return route_to(*b, two.planes[0].address, port, entropy);
  }
  DeviceConfig one;
  DeviceConfig two;
  std::unique_ptr<Backend> a;
  std::unique_ptr<Backend> b;
};

void expect_write(const Arrived& arrived, const wire::Packet& sent,
                  std::span<const std::byte> bytes) {
  wire::Packet packet;
  std::span<const std::byte> payload;
  ASSERT_TRUE(arrived.icrc_good);
  ASSERT_EQ(wire::parse_transport(arrived.transport, packet, payload), DropReason::kNone);
  EXPECT_EQ(packet.bth.psn, sent.bth.psn);
  EXPECT_EQ(packet.body, sent.body);
  EXPECT_TRUE(std::ranges::equal(payload, bytes));
}

TEST(UdpBackend, CarriesPayloadsOfAllSizesOnEveryPlane) {
  const Pair pair;
  const auto bytes = pattern(4096);
  std::uint32_t psn = 0;
  for (unsigned port = 1; port <= 4; ++port) {
    const auto entropy = pair.a->prepare_path(static_cast<PortId>(port), 0xC000 + port);
    ASSERT_TRUE(entropy.ok());
    for (std::size_t length = 0; length <= 4096; length += length < 300 ? 1 : 379) {
      const auto payload = std::span(bytes).first(length);
      const auto packet = write_packet(psn++, length);
      send_bytes(*pair.a, pair.to_b(port, entropy.value()), packet, payload);
      pair.a->flush();
      Collector got;
      ASSERT_TRUE(collect(*pair.b, got, 1));
      ASSERT_EQ(got.arrived.size(), 1U);
      EXPECT_EQ(got.arrived[0].gid, pair.one.planes[0].address);
      EXPECT_EQ(static_cast<unsigned>(got.arrived[0].port), port);
      EXPECT_EQ(got.arrived[0].entropy, entropy.value());
      expect_write(got.arrived[0], packet, payload);
    }
  }
}

TEST(UdpBackend, SendsBurstsInFewCallsAndSplitsThemAgain) {
  const Pair pair;
  const auto bytes = pattern(64 * 4096);
  const std::uint32_t entropy = pair.a->prepare_path(PortId{2}, 0xC123).value();
  const std::uint64_t calls = pair.a->counters().send_calls;
  for (std::uint32_t i = 0; i < 64; ++i) {
    send_bytes(*pair.a, pair.to_b(2, entropy), write_packet(i, 4096),
               std::span(bytes).subspan(i * 4096, 4096));
  }
  pair.a->flush();
  Collector got;
  ASSERT_TRUE(collect(*pair.b, got, 64));
  for (std::uint32_t i = 0; i < 64; ++i) {
    expect_write(got.arrived[i], write_packet(i, 4096), std::span(bytes).subspan(i * 4096, 4096));
  }
  EXPECT_EQ(pair.a->counters().packets_sent, 64U);
  if (pair.a->burst_limit() > 1) {
    EXPECT_LE(pair.a->counters().send_calls - calls, 6U);
  }
}

TEST(UdpBackend, ProcessesOnOneAddressGetNumbersInOrder) {
  const DeviceConfig config = private_device(2, 5);
  const auto first = must_open(config);
  auto second = must_open(config);
  EXPECT_EQ(first->process_number(), 0);
  EXPECT_EQ(second->process_number(), 1);
  second.reset();
  EXPECT_EQ(must_open(config)->process_number(), 1);
}

}  // namespace
}  // namespace mrc::nic::test
