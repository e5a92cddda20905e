// Several processes at one UDP port, told apart by queue pair number: back ends in one process have
// sockets and numbers of their own, as processes do.
#include "nic/io/udp/udp_neighbours.h"

#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>

#include "backend_fixture.h"

namespace mrc::nic::test {
namespace {

node::DeviceConfig card_device(unsigned host) {
  node::DeviceConfig config = private_device(2, host);
  config.dialect = wire::kCard;
  return config;
}

class UdpNeighboursTest : public ::testing::Test {
 protected:
  std::unique_ptr<Backend> host() { return must_open(card_device(1)); }

  // A packet to a queue pair of that process number, on the given port and path.
  void send(unsigned process, std::uint32_t psn, unsigned port = 1) {
    wire::Packet packet = write_packet(psn, 64);
    packet.bth.destination = QpNumber{process << 16 | 0x123};
    const Result<std::uint32_t> path = peer->prepare_path(static_cast<PortId>(port), 0xC100 + psn);
    ASSERT_TRUE(path.ok());
    send_bytes(*peer,
               {.peer = {.gid = gid}, .port = static_cast<PortId>(port), .entropy = path.value()},
               packet, payload);
  }
  void send_endpoint(wire::Opcode opcode, decltype(wire::Packet::body) body) {
    wire::Packet packet;
    packet.bth.opcode = opcode;
    packet.bth.destination = kEndpointQp;
    packet.body = body;
    const Result<std::uint32_t> path = peer->prepare_path(PortId{1}, 0xC100);
    ASSERT_TRUE(path.ok());
    peer->send({.peer = {.gid = gid}, .entropy = path.value()}, core::TrafficClass::kControl,
               packet, {});
    peer->flush();
  }

  wire::IpAddress gid = private_address(0, 1);
  std::unique_ptr<Backend> peer = must_open(card_device(2));
  std::vector<std::byte> payload = pattern(64);
};

std::uint32_t psn_of(const Arrived& arrived) {
  return std::to_integer<std::uint32_t>(arrived.transport[11]);
}

// What each of them got once `each` packets have come to all, lost ones included.
using Received = std::map<unsigned, Collector>;
void collect_all(const std::map<unsigned, Backend*>& backends, Received& got, std::size_t total) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  const auto count = [&] {
    std::size_t sum = 0;
    for (const auto& [number, collector] : got)
      sum += collector.total();
    return sum;
  };
  while (count() < total && std::chrono::steady_clock::now() < end) {
    for (const auto& [number, backend] : backends) {
      backend->on_wake();
      backend->receive(got[number], 64);
    }
  }
}

TEST_F(UdpNeighboursTest, EachGetsTheQueuePairsOfItsNumber) {
  const auto first = host();
  const auto second = host();
  const auto third = host();
  EXPECT_EQ(first->process_number(), 0);
  EXPECT_EQ(second->process_number(), 1);
  EXPECT_EQ(third->process_number(), 2);
  const std::map<unsigned, Backend*> all = {{0, first.get()}, {1, second.get()}, {2, third.get()}};
  for (std::uint32_t i = 0; i < 60; ++i)
    send(i % 3, i, 1 + i % 2);
  peer->flush();
  Received got;
  collect_all(all, got, 60);
  for (const auto& [number, backend] : all) {
    ASSERT_EQ(got[number].arrived.size(), 20U) << number;
    for (const Arrived& arrived : got[number].arrived) {
      EXPECT_EQ(psn_of(arrived) % 3, number);
      EXPECT_TRUE(arrived.icrc_good);
      EXPECT_EQ(arrived.gid, private_address(0, 2));
      EXPECT_EQ(static_cast<unsigned>(arrived.port), 1 + psn_of(arrived) % 2);
      EXPECT_EQ(arrived.entropy & 0xFFFF, 0xC100 + psn_of(arrived));
    }
  }
}

// The kernel closes the gap in its table: positions and numbers no longer agree.
TEST_F(UdpNeighboursTest, NobodyLosesPacketsWhenAnotherEnds) {
  const auto first = host();
  auto second = host();
  const auto third = host();
  second.reset();
  Received got;
  for (std::uint32_t i = 0; i < 40; ++i)
    send(i % 2 == 0 ? 0 : 2, i);
  peer->flush();
  collect_all({{0, first.get()}, {2, third.get()}}, got, 40);
  EXPECT_EQ(got[0].arrived.size(), 20U);
  EXPECT_EQ(got[2].arrived.size(), 20U);
  const auto fourth = host();
  EXPECT_EQ(fourth->process_number(), 1);
  got.clear();
  for (std::uint32_t i = 0; i < 60; ++i)
    send(i % 3, i);
  peer->flush();
  const std::map<unsigned, Backend*> all = {{0, first.get()}, {1, fourth.get()}, {2, third.get()}};
  collect_all(all, got, 60);
  for (const auto& [number, backend] : all) {
    ASSERT_EQ(got[number].arrived.size(), 20U) << number;
    for (const Arrived& arrived : got[number].arrived)
      EXPECT_EQ(psn_of(arrived) % 3, number);
  }
}

TEST_F(UdpNeighboursTest, PacketsForNobodyVanish) {
  const auto only = host();
  send(9, 1);
  send(0, 2);
  peer->flush();
  Received got;
  collect_all({{0, only.get()}}, got, 1);
  ASSERT_EQ(got[0].arrived.size(), 1U);
  EXPECT_EQ(psn_of(got[0].arrived[0]), 2U);
}

TEST_F(UdpNeighboursTest, NewsAndAnswersReachEverybodyAndAProbeReachesOne) {
  const auto first = host();
  const auto second = host();
  const std::map<unsigned, Backend*> all = {{0, first.get()}, {1, second.get()}};
  Received got;
  send_endpoint(wire::Opcode::kEndpointRequest,
                wire::EndpointRequest{.op = wire::EndpointOp::kPortStatusUpdate});
  collect_all(all, got, 2);
  EXPECT_EQ(got[0].arrived.size(), 1U);
  EXPECT_EQ(got[1].arrived.size(), 1U);
  send_endpoint(wire::Opcode::kEndpointResponse, wire::EndpointResponse{});
  collect_all(all, got, 4);
  EXPECT_EQ(got[0].arrived.size(), 2U);
  EXPECT_EQ(got[1].arrived.size(), 2U);
  send_endpoint(wire::Opcode::kEndpointRequest,
                wire::EndpointRequest{.op = wire::EndpointOp::kEvProbe});
  send(0, 1);
  peer->flush();
  collect_all(all, got, 6);
  EXPECT_EQ(got[0].arrived.size() + got[1].arrived.size(), 6U);
  EXPECT_EQ(got[0].total() + got[1].total(), 6U);
}

TEST_F(UdpNeighboursTest, WhoDoesNotShareKeepsThePort) {
  node::DeviceConfig config = card_device(1);
  config.dialect = wire::kOpenMrc;
  const auto alone = must_open(config);
  const BackendResult refused = open_backend(card_device(1));
  EXPECT_EQ(refused.backend, nullptr);
  EXPECT_NE(refused.error.find("port 4791: somebody holds it who does not share it"),
            std::string::npos)
      << refused.error;
  EXPECT_NE(refused.error.find("processes = \"udp_port\""), std::string::npos);
}

// A child that was forked and stays when its parent ends. Gone with this.
class Orphan {
 public:
  Orphan() {
    std::array<int, 2> runs{};
    EXPECT_EQ(::pipe(runs.data()), 0);
    child_ = ::fork();
    if (child_ == 0) {
      if (::write(runs[1], "", 1) != 1) ::_exit(1);
      for (;;)
        ::pause();
    }
    char any = 0;
    EXPECT_EQ(::read(runs[0], &any, 1), 1);  // it has left what it does not keep
    ::close(runs[0]);
    ::close(runs[1]);
  }
  ~Orphan() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  Orphan(const Orphan&) = delete;
  Orphan& operator=(const Orphan&) = delete;

 private:
  pid_t child_ = -1;
};

TEST_F(UdpNeighboursTest, AChildThatStaysKeepsNeitherNumberNorPackets) {
  auto first = host();
  const auto second = host();
  Received got;
  send(0, 1);
  send(1, 2);
  peer->flush();
  collect_all({{0, first.get()}, {1, second.get()}}, got, 2);  // they know each other
  const Orphan orphan;
  first.reset();
  const auto third = host();
  ASSERT_EQ(third->process_number(), 0);
  got.clear();
  for (std::uint32_t i = 0; i < 40; ++i)
    send(i % 2, i);
  peer->flush();
  collect_all({{0, third.get()}, {1, second.get()}}, got, 40);
  EXPECT_EQ(got[0].arrived.size(), 20U);
  EXPECT_EQ(got[1].arrived.size(), 20U);
}

TEST_F(UdpNeighboursTest, AChildThatStaysKeepsNoPort) {
  node::DeviceConfig config = card_device(3);
  config.dialect = wire::kOpenMrc;
  auto first = must_open(config);
  const Orphan orphan;
  first.reset();
  EXPECT_EQ(must_open(config)->process_number(), 0);
}

// Under load a plane is never empty at the end of a turn.
TEST_F(UdpNeighboursTest, WhatIsHandedOnDoesNotWaitForPlanesToBeEmpty) {
  const auto first = host();
  const auto second = host();
  send(0, 1);
  peer->flush();
  Collector unused;
  ASSERT_TRUE(collect(*first, unused, 1));
  // News about ports comes to one of them and is handed to the other.
  for (std::uint32_t i = 0; i < 200; ++i) {
    send(0, i % 64);
    send(1, i % 64);
  }
  send_endpoint(wire::Opcode::kEndpointRequest,
                wire::EndpointRequest{.op = wire::EndpointOp::kPortStatusUpdate});
  const auto news_in = [](const Collector& all) {
    return std::ranges::count_if(all.arrived, [](const Arrived& one) {
      return static_cast<wire::Opcode>(one.transport[0]) == wire::Opcode::kEndpointRequest;
    });
  };
  // Whoever got it from the network has it behind 200 others and hands it on then.
  Collector at_first;
  Collector at_second;
  while (news_in(at_first) + news_in(at_second) == 0) {
    if (news_in(at_second) == 0) first->receive(at_first, 8);
    if (news_in(at_first) == 0) second->receive(at_second, 8);
  }
  const bool first_had_it = news_in(at_first) > 0;
  Backend& other = first_had_it ? *second : *first;
  Collector& at_other = first_had_it ? at_second : at_first;
  const unsigned number = first_had_it ? 1 : 0;
  for (std::uint32_t i = 0; i < 200; ++i)
    send(number, i % 64);
  peer->flush();
  for (unsigned turn = 0; turn < 10 && news_in(at_other) == 0; ++turn)
    other.receive(at_other, 8);
  EXPECT_EQ(news_in(at_other), 1) << "behind 200 others that came after it";
}

// A plane that follows its interface: whoever comes later looks for us at the new address.
TEST_F(UdpNeighboursTest, ANumberFollowsTheAddressOfItsPlane) {
  UdpNeighbours here;
  ASSERT_EQ(here.claim(card_device(4)), 0);
  ASSERT_TRUE(here.follow(card_device(5)));
  UdpNeighbours newcomer;
  EXPECT_EQ(newcomer.claim(card_device(5)), 1);
  UdpNeighbours where_it_was;
  EXPECT_EQ(where_it_was.claim(card_device(4)), 0);
  EXPECT_FALSE(where_it_was.follow(card_device(5))) << "the number is taken there";
}

TEST_F(UdpNeighboursTest, NumbersThatStrangersHoldAreTold) {
  std::vector<os::Descriptor> squatters;
  const std::string prefix =
      "mrc-udp-" + std::string(wire::format_address(private_address(0, 6)).view()) + "-4791-";
  for (unsigned number = 0; number < 256; ++number) {
    os::Descriptor& squatter = squatters.emplace_back(::socket(AF_UNIX, SOCK_SEQPACKET, 0));
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    const std::string name = prefix + std::to_string(number);
    std::memcpy(at.sun_path + 1, name.data(), name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    const void* const untyped = &at;
    ASSERT_EQ(::bind(squatter.get(), static_cast<const sockaddr*>(untyped), length), 0);
  }
  const BackendResult refused = open_backend(card_device(6));
  EXPECT_EQ(refused.backend, nullptr);
  EXPECT_NE(refused.error.find("256 processes can share a device, but programs of other users hold "
                               "256 of them"),
            std::string::npos)
      << refused.error;
}

// Whoever may not bind the port may not hand us packets either.
TEST_F(UdpNeighboursTest, AnotherUserIsNotHeard) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to be somebody else";
  const auto only = host();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    const std::string name = "mrc-udp-" + std::string(wire::format_address(gid).view()) + "-4791-0";
    std::memcpy(to.sun_path + 1, name.data(), name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    std::array<char, 256> bytes{};
    const std::uint32_t magic = 0x4D52'4331;
    std::memcpy(bytes.data(), &magic, sizeof(magic));
    bytes[4] = 1;
    if (::setuid(65'534) != 0) ::_exit(1);
    const void* const untyped = &to;
    if (::connect(socket, static_cast<const sockaddr*>(untyped), length) != 0) ::_exit(2);
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), 0);
    ::_exit(sent == static_cast<ssize_t>(bytes.size()) ? 0 : 2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(WEXITSTATUS(status), 0);
  send(0, 7);
  peer->flush();
  Collector got;
  ASSERT_TRUE(collect(*only, got, 1));
  EXPECT_EQ(got.total(), 1U);
  EXPECT_EQ(got.arrived.size(), 1U);
}

}  // namespace
}  // namespace mrc::nic::test
