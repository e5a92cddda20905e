// Runs of packets through UDP sockets: sent with one call, told apart again, and never believed.
#include <gtest/gtest.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nic/io/udp/udp_backend.h"
#include "os/descriptor.h"
#include "os/socket_address.h"
#include "unit/nic/backend_fixture.h"
#include "wire/ip_header.h"

namespace mrc::nic::test {
namespace {

wire::Packet middle_packet(std::uint32_t psn) {
  wire::Packet packet;
  packet.bth.opcode = wire::Opcode::kWriteMiddle;
  packet.bth.has_timestamp = true;
  packet.bth.destination = QpNumber{0x123};
  packet.bth.psn = Psn(psn);
  packet.body = wire::Write{.address = 0x1000, .key = Rkey{7}, .message_length = 1 << 30};
  return packet;
}

struct RunCase {
  const char* name;
  std::uint32_t payload;
  unsigned count;
  node::PayloadCheck check;
  bool segmentation;
};

class UdpRuns : public testing::TestWithParam<RunCase> {};

// As many calls of send() would put the same packets on the wire.
TEST_P(UdpRuns, ArriveAsThePacketsTheyStandFor) {
  const RunCase& run = GetParam();
  node::DeviceConfig one = private_device(1, 1);
  node::DeviceConfig two = private_device(1, 2);
  one.payload_check = two.payload_check = run.check;
  one.segmentation = run.segmentation;
  const std::unique_ptr<Backend> a = must_open(one);
  const std::unique_ptr<Backend> b = must_open(two);
  Route route = route_to(*b, two.planes[0].address, 1, a->prepare_path(PortId{1}, 0xC300).value());
  route.peer_takes_header_check = true;
  const auto bytes = pattern(std::size_t{run.payload} * run.count);
  wire::Packet expected = middle_packet(Psn::kMask - 5);
  a->send_run(route, core::TrafficClass::kTrimmable, expected, bytes, run.count);
  a->flush();
  Collector got;
  ASSERT_TRUE(collect(*b, got, run.count));
  ASSERT_EQ(got.arrived.size(), run.count);
  for (std::size_t i = 0; i < run.count; ++i) {
    wire::Packet packet;
    std::span<const std::byte> payload;
    ASSERT_TRUE(got.arrived[i].icrc_good);
    ASSERT_EQ(wire::parse_transport(got.arrived[i].transport, packet, payload), DropReason::kNone);
    EXPECT_EQ(packet.bth.psn, expected.bth.psn);
    EXPECT_EQ(packet.body, expected.body);
    EXPECT_TRUE(
        std::ranges::equal(payload, std::span(bytes).subspan(i * run.payload, run.payload)));
    wire::move_on(expected, 1, run.payload);
  }
  EXPECT_EQ(a->counters().packets_sent, run.count);
  const bool headers_only = run.check == node::PayloadCheck::kHeaders && run.payload > 256;
  EXPECT_EQ(b->counters().header_checked, headers_only ? run.count : 0);
  if (a->burst_limit() > 1) {
    EXPECT_GT(*std::ranges::max_element(got.runs), 1U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, UdpRuns,
    testing::Values(RunCase{"Full", 4096, 40, node::PayloadCheck::kFull, true},
                    RunCase{"HeaderCheck", 4096, 40, node::PayloadCheck::kHeaders, true},
                    RunCase{"JustNotCopied", 260, 100, node::PayloadCheck::kFull, true},
                    RunCase{"Copied", 256, 100, node::PayloadCheck::kHeaders, true},
                    RunCase{"MoreThanABatchHolds", 1024, 1'500, node::PayloadCheck::kFull, true},
                    RunCase{"WithoutSegmentation", 1024, 20, node::PayloadCheck::kFull, false}),
    [](const auto& one) { return std::string(one.param.name); });

// A peer's socket that says itself where one datagram ends.
class BurstSocket {
 public:
  BurstSocket(const wire::IpAddress& address, std::uint16_t port)
      : address_(address), port_(port), socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const os::SocketAddress at = os::make_socket_address(address, port, 0);
    EXPECT_EQ(::bind(socket_.get(), &at.value.any, at.length), 0);
  }
  bool cut_at(std::size_t bytes) const {
    const int size = static_cast<int>(bytes);
    return ::setsockopt(socket_.get(), SOL_UDP, UDP_SEGMENT, &size, sizeof(size)) == 0;
  }
  void send(const node::DeviceConfig& to, std::span<const std::byte> bytes) const {
    const os::SocketAddress at = os::make_socket_address(to.planes[0].address, to.udp_port, 0);
    EXPECT_EQ(::sendto(socket_.get(), bytes.data(), bytes.size(), 0, &at.value.any, at.length),
              static_cast<ssize_t>(bytes.size()));
  }
  // Transport part and ICRC, as we would send them.
  std::vector<std::byte> datagram(const node::DeviceConfig& to, const wire::Packet& packet,
                                  std::span<const std::byte> payload) const {
    wire::FrameFormat format;
    format.ethernet = false;
    format.udp_port = to.udp_port;
    wire::FrameHeader header;
    header.source = address_;
    header.destination = to.planes[0].address;
    header.entropy = port_;
    std::vector<std::byte> frame(4096);
    frame.resize(wire::build_frame(format, header, packet, {&payload, 1}, frame));
    frame.erase(frame.begin(), frame.begin() + wire::kIpv4HeaderLength + wire::kUdpHeaderLength);
    return frame;
  }

 private:
  wire::IpAddress address_;
  std::uint16_t port_;
  os::Descriptor socket_;
};

// Each kind of liar in the middle of a burst: it is handed out by itself, for what it is.
TEST(UdpRunsFromStrangers, ABurstWhoseLaterHeadersLieIsNoRun) {
  enum Lie { kPsn, kAddress, kKey, kAsksForAnswer, kDamagedHeader, kDamagedPayload, kLies };
  constexpr std::uint32_t kPayload = 512;
  constexpr std::size_t kPackets = 6;
  constexpr std::size_t kLiar = 3;
  const node::DeviceConfig config = private_device(1, 2);
  const std::unique_ptr<Backend> device = must_open(config);
  const BurstSocket peer(private_address(0, 1), 50'000);
  const auto data = pattern(kPayload);
  for (unsigned lie = 0; lie < kLies; ++lie) {
    SCOPED_TRACE(lie);
    std::vector<std::byte> burst;
    wire::Packet honest = middle_packet(100);
    for (std::size_t i = 0; i < kPackets; ++i) {
      wire::Packet packet = honest;
      auto& write = std::get<wire::Write>(packet.body);
      const bool lies = i == kLiar;
      if (lies && lie == kPsn) packet.bth.psn = packet.bth.psn + 1;
      if (lies && lie == kAddress) write.address += 1 << 20;
      if (lies && lie == kKey) write.key = Rkey{8};
      if (lies && lie == kAsksForAnswer) packet.bth.ack_request = true;
      auto bytes = peer.datagram(config, packet, data);
      if (lies && lie == kDamagedHeader) bytes[20] ^= std::byte{1};
      if (lies && lie == kDamagedPayload) bytes[100] ^= std::byte{1};
      if (i == 0 && !peer.cut_at(bytes.size())) GTEST_SKIP() << "no UDP_SEGMENT here";
      burst.insert(burst.end(), bytes.begin(), bytes.end());
      wire::move_on(honest, 1, kPayload);
    }
    peer.send(config, burst);
    Collector got;
    ASSERT_TRUE(collect(*device, got, kPackets));
    EXPECT_EQ(got.runs, (std::vector<unsigned>{kLiar, 1, kPackets - kLiar - 1}));
    for (std::size_t i = 0; i < kPackets; ++i)
      EXPECT_EQ(got.arrived[i].icrc_good, i != kLiar || lie < kDamagedHeader) << i;
  }
}

}  // namespace
}  // namespace mrc::nic::test
