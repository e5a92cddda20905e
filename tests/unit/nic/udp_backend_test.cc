#include "nic/io/udp/udp_backend.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <set>
#include <utility>

#include "os/descriptor.h"
#include "os/socket_address.h"
#include "unit/nic/backend_fixture.h"
#include "wire/ip_header.h"

namespace mrc::nic::test {
namespace {

struct Pair : Ends {
  explicit Pair(unsigned planes = 4) : Ends(private_device(planes, 1), private_device(planes, 2)) {}
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

// A socket of somebody else, for looking at what we send and for sending what we would not.
struct Datagram {
  std::vector<std::byte> bytes;
  os::SocketAddress from;
  std::uint8_t traffic_byte = 0;
};

class PlainSocket {
 public:
  PlainSocket(const wire::IpAddress& address, std::uint16_t port)
      : address_(address), port_(port), socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const os::SocketAddress at = os::make_socket_address(address, port, 0);
    EXPECT_EQ(::bind(socket_.get(), &at.value.any, at.length), 0);
    const int on = 1;
    ::setsockopt(socket_.get(), IPPROTO_IP, IP_RECVTOS, &on, sizeof(on));
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  void send(const wire::IpAddress& to, std::uint16_t port, std::span<const std::byte> bytes,
            std::size_t traffic_byte) const {
    const int tos = static_cast<int>(traffic_byte);
    ::setsockopt(socket_.get(), IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
    const os::SocketAddress at = os::make_socket_address(to, port, 0);
    EXPECT_EQ(::sendto(socket_.get(), bytes.data(), bytes.size(), 0, &at.value.any, at.length),
              static_cast<ssize_t>(bytes.size()));
  }
  Datagram receive() const {
    Datagram out;
    out.bytes.resize(65'536);
    iovec piece{.iov_base = out.bytes.data(), .iov_len = out.bytes.size()};
    alignas(cmsghdr) std::array<std::byte, 64> control;
    msghdr header{};
    header.msg_name = &out.from.value;
    header.msg_namelen = sizeof(out.from.value);
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    const ssize_t length = ::recvmsg(socket_.get(), &header, 0);
    out.bytes.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
    const cmsghdr* const part = CMSG_FIRSTHDR(&header);
    if (part != nullptr) std::memcpy(&out.traffic_byte, CMSG_DATA(part), 1);
    return out;
  }
  const wire::IpAddress& address() const { return address_; }
  std::uint16_t port() const { return port_; }

 private:
  wire::IpAddress address_;
  std::uint16_t port_;
  os::Descriptor socket_;
};

// The datagram with the headers it had on the wire, as far as they matter.
std::vector<std::byte> as_frame(const Datagram& datagram, const PlainSocket& at) {
  std::vector<std::byte> frame(wire::kIpv4HeaderLength + wire::kUdpHeaderLength);
  const auto udp_length =
      static_cast<std::uint16_t>(wire::kUdpHeaderLength + datagram.bytes.size());
  const std::size_t ip = wire::build_ip_header({.source = os::address_of(datagram.from),
                                                .destination = at.address(),
                                                .payload_length = udp_length},
                                               frame);
  const std::size_t udp = wire::build_udp_header({.source_port = os::udp_port_of(datagram.from),
                                                  .destination_port = at.port(),
                                                  .length = udp_length},
                                                 std::span(frame).subspan(ip));
  EXPECT_EQ(ip + udp, frame.size());
  frame.insert(frame.end(), datagram.bytes.begin(), datagram.bytes.end());
  return frame;
}

// What a peer of ours at `from` would send: transport part and ICRC of a write.
std::vector<std::byte> frame_transport(const PlainSocket& from, const node::DeviceConfig& to,
                                       std::span<const std::byte> payload) {
  wire::FrameFormat format;
  format.ethernet = false;
  format.udp_port = to.udp_port;
  wire::FrameHeader header;
  header.source = from.address();
  header.destination = to.planes[0].address;
  header.entropy = from.port();
  std::vector<std::byte> frame(65'536);
  const std::size_t length =
      wire::build_frame(format, header, write_packet(1, payload.size()), {&payload, 1}, frame);
  frame.resize(length);
  frame.erase(frame.begin(), frame.begin() + wire::kIpv4HeaderLength + wire::kUdpHeaderLength);
  return frame;
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

TEST(UdpBackend, KeepsOrderAndBytesInBurstsOfMixedSizes) {
  const Pair pair;
  const auto bytes = pattern(20'000);
  const std::size_t lengths[] = {4096, 4096, 100, 4096, 0, 0,    64, 64,
                                 64,   63,   64,  4096, 1, 2048, 257};
  std::vector<std::uint32_t> entropies;
  for (unsigned i = 0; i < 3; ++i)
    entropies.push_back(pair.a->prepare_path(PortId{3}, 0xC200 + i).value());
  std::uint32_t psn = 0;
  for (const std::uint32_t entropy : entropies) {
    for (const std::size_t length : lengths) {
      // In pieces, as a program's scatter list would have it.
      const std::span<const std::byte> pieces[] = {
          std::span(bytes).first(length / 3),
          {},
          std::span(bytes).subspan(length / 3, length - length / 3)};
      pair.a->send(pair.to_b(3, entropy), core::TrafficClass::kTrimmable,
                   write_packet(psn++, length), pieces);
    }
  }
  pair.a->flush();
  Collector got;
  ASSERT_TRUE(collect(*pair.b, got, psn));
  for (std::uint32_t i = 0; i < psn; ++i) {
    const std::size_t length = lengths[i % std::size(lengths)];
    expect_write(got.arrived[i], write_packet(i, length), std::span(bytes).first(length));
    EXPECT_EQ(got.arrived[i].entropy, entropies[i / std::size(lengths)]);
  }
}

TEST(UdpBackend, FillsMoreThanOneBatchWithoutLoss) {
  const Pair pair(1);
  const auto bytes = pattern(4096);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    // Sizes that never join, so that every packet is a message of its own.
    const std::size_t length = i % 2 == 0 ? 300 : 600;
    send_bytes(*pair.a, pair.to_b(1, 0xC300), write_packet(i, length),
               std::span(bytes).first(length));
  }
  pair.a->flush();
  Collector got;
  ASSERT_TRUE(collect(*pair.b, got, 1000));
  EXPECT_EQ(pair.a->counters().send_refused, 0U);
  EXPECT_EQ(pair.b->counters().packets_received, 1000U);
}

TEST(UdpBackend, WorksWithoutSegmentation) {
  Pair pair(1);
  pair.one.segmentation = false;
  pair.a.reset();
  pair.a = must_open(pair.one);
  EXPECT_EQ(pair.a->burst_limit(), 1U);
  const auto bytes = pattern(4096);
  for (std::uint32_t i = 0; i < 20; ++i)
    send_bytes(*pair.a, pair.to_b(1, 0xC300), write_packet(i, 4096), bytes);
  pair.a->flush();
  Collector got;
  ASSERT_TRUE(collect(*pair.b, got, 20));
  for (std::uint32_t i = 0; i < 20; ++i)
    expect_write(got.arrived[i], write_packet(i, 4096), bytes);
}

TEST(UdpBackend, CarriesIpv6WithTheFlowLabel) {
  node::DeviceConfig config;
  config.udp_port = static_cast<std::uint16_t>(22'000 + ::getpid() % 100 * 256);
  config.planes.push_back({.address = wire::ipv6_address(0, 1), .prefix_bits = 128});
  BackendResult opened = open_backend(config);
  if (opened.backend == nullptr) GTEST_SKIP() << opened.error;
  const auto peer = must_open(config);
  const auto bytes = pattern(3000);
  std::set<std::uint32_t> carried;
  for (const std::uint32_t wish : {0x0000'C400U, 0x1234'C400U, 0xFFFF'C401U}) {
    const auto entropy = opened.backend->prepare_path(PortId{1}, wish);
    ASSERT_TRUE(entropy.ok());
    EXPECT_TRUE(carried.insert(entropy.value()).second) << "another path";
    // Where the kernel grants no label, the source port tells the second from the first.
    if (entropy.value() >> 16 != 0 || wish != 0x1234'C400U) {
      EXPECT_EQ(entropy.value() & 0xFFFF, wish & 0xFFFF);
    }
    const Route route = route_to(*peer, config.planes[0].address, 1, entropy.value());
    for (std::uint32_t i = 0; i < 30; ++i)
      send_bytes(*opened.backend, route, write_packet(i, 3000), bytes);
    opened.backend->flush();
    Collector got;
    ASSERT_TRUE(collect(*peer, got, 30));
    for (std::uint32_t i = 0; i < 30; ++i) {
      expect_write(got.arrived[i], write_packet(i, 3000), bytes);
      EXPECT_EQ(got.arrived[i].entropy, entropy.value());
      EXPECT_EQ(got.arrived[i].gid, config.planes[0].address);
    }
  }
}

TEST(UdpBackend, WhatLeavesIsAFrameOfOursWithItsClass) {
  const node::DeviceConfig config = private_device(1, 1);
  const auto backend = must_open(config);
  const PlainSocket far(private_address(0, 9), config.udp_port);
  const std::uint32_t entropy = backend->prepare_path(PortId{1}, 0xC500).value();
  const Route route{.peer = {.gid = private_address(0, 9)}, .port = PortId{1}, .entropy = entropy};
  const auto bytes = pattern(6 * 1500);
  const std::pair<core::TrafficClass, std::pair<unsigned, wire::Ecn>> classes[] = {
      {core::TrafficClass::kControl, {46, wire::Ecn::kNotEct}},
      {core::TrafficClass::kTrimmable, {4, wire::Ecn::kEct0}},
      {core::TrafficClass::kTrimmableRetransmission, {8, wire::Ecn::kEct0}},
      {core::TrafficClass::kNoTrim, {0, wire::Ecn::kEct0}}};
  for (const auto& [traffic_class, marks] : classes) {
    for (std::uint32_t i = 0; i < 6; ++i) {
      send_bytes(*backend, route, write_packet(i, 1499), std::span(bytes).subspan(i * 1500, 1499),
                 traffic_class);
    }
    backend->flush();
    for (std::uint32_t i = 0; i < 6; ++i) {
      const Datagram datagram = far.receive();
      EXPECT_EQ(datagram.traffic_byte >> 2, marks.first);
      EXPECT_EQ(static_cast<wire::Ecn>(datagram.traffic_byte & 3), marks.second);
      const auto frame = as_frame(datagram, far);
      wire::FrameFormat format;
      format.ethernet = false;
      wire::FrameHeader header;
      wire::Packet packet;
      std::span<const std::byte> payload;
      ASSERT_EQ(wire::parse_frame(format, frame, header, packet, payload), DropReason::kNone);
      EXPECT_EQ(header.source, config.planes[0].address);
      EXPECT_EQ(header.entropy, entropy);
      EXPECT_EQ(packet.bth.psn.value(), i);
      EXPECT_TRUE(std::ranges::equal(payload, std::span(bytes).subspan(i * 1500, 1499)));
    }
  }
}

// A controller's probes carry the DSCP it asked for, whatever class they are in.
TEST(UdpBackend, ADscpThatWasAskedForIsCarried) {
  const node::DeviceConfig config = private_device(1, 1);
  const auto backend = must_open(config);
  const PlainSocket far(private_address(0, 9), config.udp_port);
  Route route{.peer = {.gid = private_address(0, 9)}, .port = PortId{1}};
  route.entropy = backend->prepare_path(PortId{1}, 0xC500).value();
  for (const std::uint8_t dscp : {0, 10, 46, 63}) {
    route.dscp = dscp;
    send_bytes(*backend, route, write_packet(1, 8), pattern(8), core::TrafficClass::kNoTrim);
    backend->flush();
    EXPECT_EQ(far.receive().traffic_byte >> 2, dscp);
  }
}

TEST(UdpBackend, ReadsMarksTrimsAndBrokenChecksums) {
  const node::DeviceConfig config = private_device(1, 1);
  const auto backend = must_open(config);
  const PlainSocket far(private_address(0, 9), 0xC600);
  const auto bytes = pattern(100);
  std::vector<std::byte> transport = frame_transport(far, config, bytes);

  far.send(config.planes[0].address, config.udp_port, transport, 4 << 2 | 3);
  Collector got;
  ASSERT_TRUE(collect(*backend, got, 1));
  ASSERT_EQ(got.arrived.size(), 1U);
  EXPECT_TRUE(got.arrived[0].congestion_experienced);
  EXPECT_TRUE(got.arrived[0].icrc_good);
  EXPECT_EQ(got.arrived[0].gid, private_address(0, 9));
  expect_write(got.arrived[0], write_packet(1, 100), bytes);

  for (std::size_t at = 0; at < transport.size(); ++at) {
    if (at == 4) continue;  // not covered: switches may use it
    std::vector<std::byte> broken = transport;
    broken[at] ^= std::byte{0x10};
    far.send(config.planes[0].address, config.udp_port, broken, 4 << 2);
    ASSERT_TRUE(collect(*backend, got, at < 4 ? at + 2 : at + 1));
    EXPECT_FALSE(got.arrived.back().icrc_good) << at;
    EXPECT_FALSE(got.arrived.back().congestion_experienced);
  }

  Collector trimmed;
  transport.resize(wire::trimmed_length(false));
  far.send(config.planes[0].address, config.udp_port, transport, 12 << 2 | 2);
  far.send(config.planes[0].address, config.udp_port, transport, 16 << 2 | 2);
  ASSERT_TRUE(collect(*backend, trimmed, 2));
  ASSERT_EQ(trimmed.arrived.size(), 2U);
  EXPECT_EQ(trimmed.arrived[0].trim, core::TrimState::kTrimmed);
  EXPECT_EQ(trimmed.arrived[1].trim, core::TrimState::kTrimmedLastHop);
  EXPECT_EQ(trimmed.arrived[0].transport, transport);
}

struct Checks {
  node::PayloadCheck of_sender;
  node::PayloadCheck of_receiver;
  bool peer_takes = true;  // what the sender was told
};

// Whether a long payload was left out of the check, and whether the receiver took the packet.
std::pair<bool, bool> left_out_and_good(const Checks& checks) {
  node::DeviceConfig from = private_device(1, 1);
  node::DeviceConfig to = private_device(1, 2);
  from.payload_check = checks.of_sender;
  to.payload_check = checks.of_receiver;
  const auto a = must_open(from);
  const auto b = must_open(to);
  Route route = route_to(*b, to.planes[0].address, 1, a->prepare_path(PortId{1}, 0xC200).value());
  route.peer_takes_header_check = checks.peer_takes;
  const auto bytes = pattern(4096);
  send_bytes(*a, route, write_packet(1, 4096), bytes);
  a->flush();
  Collector got;
  EXPECT_TRUE(collect(*b, got, 1));
  return {b->counters().header_checked == 1, got.arrived[0].icrc_good};
}

TEST(UdpBackend, APayloadIsLeftOutOfTheCheckWhenBothEndsWantIt) {
  using enum node::PayloadCheck;
  const std::pair<bool, bool> covered(false, true);
  const std::pair<bool, bool> left_out(true, true);
  EXPECT_EQ(left_out_and_good({kFull, kFull}), covered);
  EXPECT_EQ(left_out_and_good({kFull, kHeaders}), covered);
  EXPECT_EQ(left_out_and_good({kHeaders, kHeaders, false}), covered) << "not told yet";
  EXPECT_EQ(left_out_and_good({kHeaders, kHeaders}), left_out);
  EXPECT_FALSE(left_out_and_good({kHeaders, kFull}).second) << "told wrongly: is refused";
}

TEST(UdpBackend, GarbageOfEveryLengthIsCountedAndHarmless) {
  const node::DeviceConfig config = private_device(1, 1);
  const auto backend = must_open(config);
  const PlainSocket far(private_address(0, 9), 0xC700);
  Collector got;
  std::size_t sent = 0;
  for (std::size_t length = 0; length <= 65'507; length += length < 400 ? 1 : 4'999) {
    const auto bytes = pattern(length, static_cast<unsigned>(length));
    far.send(config.planes[0].address, config.udp_port, bytes, sent % 256);
    ASSERT_TRUE(collect(*backend, got, ++sent)) << length;
  }
  for (const Arrived& arrived : got.arrived)
    EXPECT_TRUE(!arrived.icrc_good || arrived.trim != core::TrimState::kWhole);
  EXPECT_FALSE(got.dropped.empty());
}

TEST(UdpBackend, StrangersAreDropped) {
  const node::DeviceConfig config = private_device(1, 1);
  const auto backend = must_open(config);
  const PlainSocket stranger(private_address(5, 1), 0xC800);
  stranger.send(config.planes[0].address, config.udp_port, pattern(60), 0);
  Collector got;
  ASSERT_TRUE(collect(*backend, got, 1));
  EXPECT_TRUE(got.arrived.empty());
  EXPECT_EQ(got.dropped[0], DropReason::kWrongSource);
}

TEST(UdpBackend, FindsPeersOfNoRuleInTheTable) {
  Pair pair(2);
  // The peer's second address breaks the rule; both sides are told.
  pair.two.planes[1].address = private_address(1, 13);
  pair.one.peers.push_back({.gid = pair.two.planes[0].address,
                            .planes = {pair.two.planes[0].address, pair.two.planes[1].address}});
  pair.a.reset();
  pair.b.reset();
  pair.a = must_open(pair.one);
  pair.b = must_open(pair.two);
  const auto bytes = pattern(64);
  send_bytes(*pair.a, pair.to_b(2, 0xC900), write_packet(1, 64), bytes);
  pair.a->flush();
  Collector got;
  ASSERT_TRUE(collect(*pair.b, got, 1));
  EXPECT_EQ(got.arrived[0].gid, pair.one.planes[0].address);
  const Route back = route_to(*pair.a, pair.one.planes[0].address, 2, 0xC901);
  send_bytes(*pair.b, back, write_packet(2, 64), bytes);
  pair.b->flush();
  Collector answer;
  ASSERT_TRUE(collect(*pair.a, answer, 1));
  ASSERT_EQ(answer.arrived.size(), 1U);
  EXPECT_EQ(answer.arrived[0].gid, pair.two.planes[0].address);
}

TEST(UdpBackend, SourcePortsThatAreNotOursAreReplaced) {
  const node::DeviceConfig config = private_device(2, 1);
  const auto backend = must_open(config);
  const PlainSocket holder(config.planes[0].address, 0xCA00);
  std::vector<std::uint32_t> seen;
  for (const std::uint32_t wish : {80U, 1023U, std::uint32_t{config.udp_port},
                                   std::uint32_t{config.udp_port} + 255, 0xCA00U}) {
    const auto got = backend->prepare_path(PortId{1}, wish);
    ASSERT_TRUE(got.ok());
    EXPECT_NE(got.value(), wish);
    EXPECT_GE(got.value(), 0xC000U);
    EXPECT_EQ(backend->prepare_path(PortId{1}, wish).value(), got.value());
    seen.push_back(got.value());
    // The other plane has the same wish and must not get the same substitute.
    const auto other = backend->prepare_path(PortId{2}, wish);
    if (wish != 0xCA00U) seen.push_back(other.value());
  }
  std::ranges::sort(seen);
  EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
  EXPECT_EQ(backend->prepare_path(PortId{1}, 6000).value(), 6000U);
  EXPECT_FALSE(backend->prepare_path(PortId{3}, 6000).ok());
}

// OCP's example of generated EVs has its 16 bits in the half that IPv4 does not carry.
TEST(UdpBackend, EvsThatDifferInTheOtherHalfStayDifferentPaths) {
  const Pair pair(1);
  const auto bytes = pattern(64);
  std::set<std::uint32_t> carried;
  for (std::uint32_t i = 0; i < 16; ++i) {
    const std::uint32_t wish = (0x1230 + i) << 16 | 0xC800;
    const auto entropy = pair.a->prepare_path(PortId{1}, wish);
    ASSERT_TRUE(entropy.ok());
    EXPECT_EQ(pair.a->prepare_path(PortId{1}, wish).value(), entropy.value()) << "and it stays so";
    carried.insert(entropy.value());
    send_bytes(*pair.a, pair.to_b(1, entropy.value()), write_packet(wish, 64), bytes);
    pair.a->flush();
    Collector got;
    ASSERT_TRUE(collect(*pair.b, got, 1));
    EXPECT_EQ(got.arrived[0].entropy, entropy.value());
  }
  EXPECT_EQ(carried.size(), 16U);
  EXPECT_TRUE(carried.contains(0xC800)) << "the first has what it wished for";
}

TEST(UdpBackend, MorePathsThanSocketsShareThem) {
  const Pair pair(1);
  const auto bytes = pattern(64);
  std::uint32_t sent = 0;
  for (std::uint32_t wish = 0x8000; wish < 0x8000 + 3000; ++wish) {
    const auto entropy = pair.a->prepare_path(PortId{1}, wish);
    ASSERT_TRUE(entropy.ok());
    send_bytes(*pair.a, pair.to_b(1, entropy.value()), write_packet(wish, 64), bytes);
    pair.a->flush();
    Collector got;
    ASSERT_TRUE(collect(*pair.b, got, 1));
    EXPECT_EQ(got.arrived[0].entropy, entropy.value());
    ++sent;
  }
  EXPECT_EQ(pair.a->counters().packets_sent, sent);
}

TEST(UdpBackend, ReceivedTooLateIsCounted) {
  const Pair pair(1);
  const auto bytes = pattern(4096);
  const std::uint32_t entropy = pair.a->prepare_path(PortId{1}, 0xCC00).value();
  Collector got;
  std::uint32_t sent = 0;
  // Fill the peer's buffer until something must have been lost, however large it is.
  for (int round = 0; round < 40 && pair.b->counters().receive_overflow == 0; ++round) {
    for (int i = 0; i < 40'000; ++i)
      send_bytes(*pair.a, pair.to_b(1, entropy), write_packet(sent++, 4096), bytes);
    pair.a->flush();
    got.arrived.clear();
    while (pair.b->receive(got, 64) > 0)
      got.arrived.clear();
    send_bytes(*pair.a, pair.to_b(1, entropy), write_packet(sent++, 4096), bytes);
    pair.a->flush();
    collect(*pair.b, got, 1);
  }
  EXPECT_GT(pair.b->counters().receive_overflow, 0U);
}

TEST(UdpBackend, APlaneWithoutItsAddressIsDownAndTheOthersWork) {
  node::DeviceConfig config = private_device(2, 1);
  config.planes[1].address = wire::ipv4_address(0xCB00'7101);  // 203.0.113.1, for documents
  const auto backend = must_open(config);
  EXPECT_EQ(backend->link_up(), PortMask::first(1));
  EXPECT_EQ(backend->free_ports(), PortMask::first(1));
  const auto bytes = pattern(64);
  send_bytes(*backend, route_to(*backend, config.planes[0].address, 2, 0xCD00), write_packet(1, 64),
             bytes);
  backend->flush();
  backend->on_wake();
  EXPECT_EQ(backend->counters().send_refused, 1U);
  EXPECT_EQ(backend->link_up(), PortMask::first(1));

  config.planes.erase(config.planes.begin());
  EXPECT_EQ(open_backend(config).error,
            "mrc0: no interface of this machine has the address 203.0.113.1");
}

TEST(UdpBackend, RoutesThatLeadNowhereAreRefused) {
  const node::DeviceConfig config = private_device(1, 1);
  const auto backend = must_open(config);
  const auto bytes = pattern(64);
  Route route{.peer = {.gid = wire::ipv4_address(0x0A00'0001)}, .port = PortId{1}};
  send_bytes(*backend, route, write_packet(1, 64), bytes);  // of no network of ours
  route.peer.gid = wire::ipv6_address(1, 1);
  send_bytes(*backend, route, write_packet(1, 64), bytes);
  route = route_to(*backend, config.planes[0].address, 2, 1);  // no such port
  send_bytes(*backend, route, write_packet(1, 64), bytes);
  route.port = kNoPort;
  send_bytes(*backend, route, write_packet(1, 64), bytes);
  backend->flush();
  EXPECT_EQ(backend->counters().send_refused, 4U);
}

TEST(UdpBackend, KnowsTheMtuOfItsInterface) {
  node::DeviceConfig config = private_device(1, 1);
  EXPECT_EQ(must_open(config)->path_mtu(), 4096U);
  config.path_mtu = 8192;
  EXPECT_EQ(must_open(config)->path_mtu(), 8192U);
  config.path_mtu = 512;
  EXPECT_EQ(must_open(config)->path_mtu(), 512U);
  EXPECT_EQ(must_open(config)->port_bits_per_second(), 100'000'000'000U);
}

TEST(UdpBackend, ProcessesOnOneAddressGetNumbersInOrder) {
  const node::DeviceConfig config = private_device(2, 5);
  const auto first = must_open(config);
  auto second = must_open(config);
  EXPECT_EQ(first->process_number(), 0);
  EXPECT_EQ(second->process_number(), 1);
  second.reset();
  EXPECT_EQ(must_open(config)->process_number(), 1);
}

bool bring_loopback_up() {
  const os::Descriptor any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", sizeof request.ifr_name - 1);
  request.ifr_flags = IFF_UP;
  return ::ioctl(any.get(), SIOCSIFFLAGS, &request) == 0;
}

// What an operator can do against those who wait for the port of a process that dies.
TEST(UdpBackend, PortsThatTheSystemReservesAreForThoseWithTheRight) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const node::DeviceConfig config = private_device(1);
    const unsigned end = config.udp_port + 256U;
    if (::unshare(CLONE_NEWNET) != 0 || !bring_loopback_up()) ::_exit(77);
    std::ofstream reserved("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    if (!(reserved << end << std::flush)) ::_exit(77);
    if (open_backend(config).backend == nullptr) ::_exit(1);
    if (::setresuid(12'345, 12'345, 12'345) != 0) ::_exit(2);
    const BackendResult refused = open_backend(config);
    if (refused.backend != nullptr) ::_exit(3);
    ::_exit(refused.error.find("ip_unprivileged_port_start") == std::string::npos ? 4 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no network namespaces here";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace mrc::nic::test
