// The UDP back end when interfaces come and go: two namespaces, one veth pair for each of two
// planes. Returns 77 where namespaces cannot be made.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>

#include "node/plane_address.h"
#include "os/descriptor.h"
#include "unit/nic/backend_fixture.h"

namespace mrc::nic::test {
namespace {

bool shell(const std::string& command) {
  // The test has no input that could end up in the command.
  return std::system(("{ " + command + "; } >/dev/null 2>&1").c_str()) == 0;  // NOLINT
}

// A network namespace, kept alive by a child that sleeps in it.
class Namespace {
 public:
  Namespace() {
    child_ = ::fork();
    if (child_ == 0) {
      if (::unshare(CLONE_NEWNET) != 0) ::_exit(1);
      for (;;)
        ::pause();
    }
    const std::string own = "/proc/" + std::to_string(::getpid()) + "/ns/net";
    const std::string its = "/proc/" + std::to_string(child_) + "/ns/net";
    for (int i = 0; i < 1000 && !valid(); ++i) {
      std::array<char, 64> a{};
      std::array<char, 64> b{};
      if (::readlink(own.c_str(), a.data(), a.size() - 1) > 0 &&
          ::readlink(its.c_str(), b.data(), b.size() - 1) > 0 && a != b) {
        descriptor_ = os::Descriptor(::open(its.c_str(), O_RDONLY | O_CLOEXEC));
      }
      ::usleep(10'000);
    }
  }
  ~Namespace() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  Namespace(const Namespace&) = delete;
  Namespace& operator=(const Namespace&) = delete;

  bool valid() const { return descriptor_.valid(); }
  void enter() const { ASSERT_EQ(::setns(descriptor_.get(), CLONE_NEWNET), 0); }
  bool run(const std::string& command) const {
    return shell("nsenter -t " + std::to_string(child_) + " -n " + command);
  }
  pid_t child() const { return child_; }

 private:
  pid_t child_ = -1;
  os::Descriptor descriptor_;
};

constexpr PortMask kBoth = PortMask::first(2);
constexpr PortMask kFirst = PortMask::first(1);

// Two hosts with two planes between them.
class Links : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(left_.valid() && right_.valid());
    for (const std::string plane : {"1", "2"}) {
      const std::string link = "ip link add p" + plane + " type veth peer name p" + plane +
                               " netns " + std::to_string(right_.child());
      ASSERT_TRUE(left_.run(link));
    }
    for (const auto* const side : {&left_, &right_}) {
      const std::string host = side == &left_ ? "1" : "2";
      ASSERT_TRUE(side->run("ip link set lo up"));
      for (const std::string plane : {"1", "2"}) {
        ASSERT_TRUE(side->run("ip addr add 10.9." + plane + "." + host + "/24 dev p" + plane));
        ASSERT_TRUE(side->run("ip -6 addr add fc09:" + plane + "::" + host + "/64 dev p" + plane +
                              " nodad"));
        ASSERT_TRUE(side->run("ip link set p" + plane + " mtu 9000 up"));
      }
    }
  }

  static node::DeviceConfig device(const std::string& ip) {
    node::ConfigResult result = node::parse_config(
        "[device.mrc0]\ninterfaces = [\"p1\", \"p2\"]\nip = \"" + ip + "\"\n", "test");
    EXPECT_EQ(result.error, "");
    return result.devices.empty() ? node::DeviceConfig{} : result.devices[0];
  }
  std::unique_ptr<Backend> open_in(const Namespace& side, const std::string& ip) {
    side.enter();
    const node::DeviceConfig config = device(ip);
    (&side == &left_ ? left_gid_ : right_gid_) = config.planes[0].address;
    auto backend = must_open(config);
    // The kernel announces the carrier of a new link when it gets round to it, which may be after
    // the device has looked.
    EXPECT_TRUE(becomes(*backend, side, kBoth));
    return backend;
  }

  // Whether a packet on that port arrives, tried for a while: neighbours have to be found first.
  bool reaches(Backend& from, Backend& to, unsigned port) {
    left_.enter();  // sockets belong to where they are made
    const auto bytes = pattern(4096);
    const Route route = route_to(to, right_gid_, port,
                                 from.prepare_path(static_cast<PortId>(port), 0xC000).value());
    for (int i = 0; i < 100; ++i) {
      for (std::uint32_t k = 0; k < 4; ++k)
        send_bytes(from, route, write_packet(k, bytes.size()), bytes);
      from.flush();
      ::usleep(20'000);
      Collector got;
      to.receive(got, 64);
      if (!got.arrived.empty()) return got.arrived[0].icrc_good && got.arrived[0].gid == left_gid_;
    }
    return false;
  }
  // Waits for the descriptor as an engine does; at most ten seconds.
  bool becomes(Backend& backend, const Namespace& side, PortMask wanted) {
    side.enter();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (backend.link_up() != wanted) {
      if (std::chrono::steady_clock::now() > end) return false;
      pollfd descriptor{.fd = backend.wait_descriptor(), .events = POLLIN, .revents = 0};
      ::poll(&descriptor, 1, 1000);
      backend.on_wake();
      Collector unused;
      backend.receive(unused, 64);
    }
    return true;
  }

  Namespace left_;
  Namespace right_;
  wire::IpAddress left_gid_;
  wire::IpAddress right_gid_;
};

TEST_F(Links, PacketsCrossEveryPlaneInBothIpVersions) {
  for (const std::string ip : {"ipv4", "ipv6"}) {
    const auto a = open_in(left_, ip);
    const auto b = open_in(right_, ip);
    EXPECT_EQ(a->path_mtu(), 4096U);
    EXPECT_TRUE(reaches(*a, *b, 1)) << ip;
    EXPECT_TRUE(reaches(*a, *b, 2)) << ip;
  }
}

TEST_F(Links, AnInterfaceThatGoesDownAndUpIsNoticedAtBothEnds) {
  const auto a = open_in(left_, "ipv4");
  const auto b = open_in(right_, "ipv4");
  EXPECT_EQ(a->link_up(), kBoth);
  ASSERT_TRUE(reaches(*a, *b, 2));
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(left_.run("ip link set p2 down"));
    EXPECT_TRUE(becomes(*a, left_, kFirst));
    EXPECT_TRUE(becomes(*b, right_, kFirst));  // no carrier
    EXPECT_FALSE(a->free_ports().contains(PortId{2}));
    // Sending all the same is refused or lost, and harmless.
    const auto bytes = pattern(64);
    send_bytes(*a, route_to(*b, right_gid_, 2, 0xC000), write_packet(1, 64), bytes);
    a->flush();
    EXPECT_TRUE(reaches(*a, *b, 1));
    ASSERT_TRUE(left_.run("ip link set p2 up"));
    EXPECT_TRUE(becomes(*a, left_, kBoth));
    EXPECT_TRUE(becomes(*b, right_, kBoth));
    EXPECT_TRUE(reaches(*a, *b, 2));
  }
}

TEST_F(Links, AnAddressMayGoAndComeBack) {
  const auto a = open_in(left_, "ipv4");
  const auto b = open_in(right_, "ipv4");
  ASSERT_TRUE(left_.run("ip addr del 10.9.2.1/24 dev p2"));
  EXPECT_TRUE(becomes(*a, left_, kFirst));
  ASSERT_TRUE(left_.run("ip addr add 10.9.2.1/24 dev p2"));
  EXPECT_TRUE(becomes(*a, left_, kBoth));
  EXPECT_TRUE(reaches(*a, *b, 2));
}

TEST_F(Links, ADeviceStartsWithoutAnInterfaceAndTakesItInWhenItComes) {
  ASSERT_TRUE(left_.run("ip link del p2"));
  left_.enter();
  const node::DeviceConfig config = device("ipv4");
  ASSERT_EQ(config.planes.size(), 2U);
  EXPECT_FALSE(node::has_address(config.planes[1]));
  left_gid_ = config.planes[0].address;
  const auto a = must_open(config);
  EXPECT_TRUE(becomes(*a, left_, kFirst));
  const std::vector<std::string> missing = a->take_notices();
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing[0],
            "mrc0: port 2: there is no interface p2; going on without this plane until it comes");

  ASSERT_TRUE(
      left_.run("ip link add p2 type veth peer name p2 netns " + std::to_string(right_.child())));
  ASSERT_TRUE(right_.run("ip addr add 10.9.2.2/24 dev p2"));
  ASSERT_TRUE(right_.run("ip link set p2 mtu 9000 up"));
  ASSERT_TRUE(left_.run("ip link set p2 mtu 9000 up"));
  ASSERT_TRUE(left_.run("ip addr add 10.9.2.1/24 dev p2"));
  EXPECT_TRUE(becomes(*a, left_, kBoth));
  const std::vector<std::string> come = a->take_notices();
  ASSERT_EQ(come.size(), 1U);
  EXPECT_EQ(come[0], "mrc0: port 2: p2 has come with 10.9.2.1, the plane is in use");
  const auto b = open_in(right_, "ipv4");
  EXPECT_TRUE(reaches(*a, *b, 2));
}

TEST_F(Links, AnInterfaceThatLostItsIpv4AddressIsAMissingPlaneAndNoOtherIpVersion) {
  ASSERT_TRUE(left_.run("ip addr del 10.9.2.1/24 dev p2"));
  left_.enter();
  const node::ConfigResult result =
      node::parse_config("[device.mrc0]\ninterfaces = [\"p1\", \"p2\"]\n", "test");
  ASSERT_EQ(result.error, "");
  const auto a = must_open(result.devices[0]);
  EXPECT_TRUE(becomes(*a, left_, kFirst));
  ASSERT_TRUE(left_.run("ip addr add 10.9.2.1/24 dev p2"));
  EXPECT_TRUE(becomes(*a, left_, kBoth));
}

TEST_F(Links, APlaneThatComesWithTooSmallAnMtuIsNotUsed) {
  ASSERT_TRUE(left_.run("ip addr del 10.9.2.1/24 dev p2"));
  left_.enter();
  node::DeviceConfig config = device("ipv4");
  config.path_mtu = 4096;
  const auto a = must_open(config);
  EXPECT_TRUE(becomes(*a, left_, kFirst));
  a->take_notices();
  ASSERT_TRUE(left_.run("ip link set p2 mtu 1500"));
  ASSERT_TRUE(left_.run("ip addr add 10.9.2.1/24 dev p2"));
  std::vector<std::string> told;
  for (int i = 0; i < 100 && told.empty(); ++i) {
    ::usleep(50'000);
    becomes(*a, left_, kFirst);
    a->on_wake();
    told = a->take_notices();
  }
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0],
            "mrc0: port 2: p2 has come, but its MTU does not fit packets of 4096 bytes: not used");
  EXPECT_EQ(a->link_up(), kFirst);
}

TEST_F(Links, APlaneMovesToAnotherNetwork) {
  const auto a = open_in(left_, "ipv4");
  const auto b = open_in(right_, "ipv4");
  ASSERT_TRUE(reaches(*a, *b, 2));
  for (const auto* const side : {&left_, &right_}) {
    const std::string host = side == &left_ ? "1" : "2";
    ASSERT_TRUE(side->run("ip addr del 10.9.2." + host + "/24 dev p2"));
    Backend& backend = side == &left_ ? *a : *b;
    EXPECT_TRUE(becomes(backend, *side, kFirst));
    ASSERT_TRUE(side->run("ip addr add 10.77.0." + host + "/24 dev p2"));
    EXPECT_TRUE(becomes(backend, *side, kBoth));
  }
  EXPECT_TRUE(reaches(*a, *b, 2));
}

TEST_F(Links, AnInterfaceMayVanish) {
  const auto a = open_in(left_, "ipv4");
  const auto b = open_in(right_, "ipv4");
  ASSERT_TRUE(left_.run("ip link del p2"));
  EXPECT_TRUE(becomes(*a, left_, kFirst));
  EXPECT_TRUE(becomes(*b, right_, kFirst));
  EXPECT_TRUE(reaches(*a, *b, 1));
}

TEST_F(Links, ASlowLinkBlocksItsPortAndLosesNothing) {
  const auto a = open_in(left_, "ipv4");
  const auto b = open_in(right_, "ipv4");
  ASSERT_TRUE(reaches(*a, *b, 1));
  if (!left_.run("tc qdisc add dev p1 root tbf rate 400mbit burst 128k limit 200000000")) {
    GTEST_SKIP() << "no token bucket in this kernel";
  }
  left_.enter();
  const std::uint64_t refused = a->counters().send_refused;
  const std::uint64_t before = a->counters().packets_sent;
  const auto bytes = pattern(4096);
  const Route route = route_to(*b, right_gid_, 1, a->prepare_path(PortId{1}, 0xC000).value());
  std::uint32_t sent = 0;
  while (a->free_ports().contains(PortId{1})) {
    ASSERT_LT(sent, 100'000U);
    for (int i = 0; i < 15; ++i)
      send_bytes(*a, route, write_packet(sent++, 4096), bytes);
    a->flush();
  }
  EXPECT_TRUE(a->free_ports().contains(PortId{2}));
  Collector got;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!a->free_ports().contains(PortId{1}) || got.total() < sent) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    pollfd descriptor{.fd = a->wait_descriptor(), .events = POLLIN, .revents = 0};
    ::poll(&descriptor, 1, 10);
    a->on_wake();
    b->receive(got, 1000);
  }
  EXPECT_EQ(a->counters().send_refused, refused);
  EXPECT_EQ(a->counters().packets_sent - before, sent);
  EXPECT_EQ(b->counters().receive_overflow, 0U);
}

TEST_F(Links, APathMtuThatDoesNotFitIsRefusedWithTheReason) {
  ASSERT_TRUE(left_.run("ip link set p2 mtu 1500"));
  left_.enter();
  node::DeviceConfig config = device("ipv4");
  EXPECT_EQ(must_open(config)->path_mtu(), 1024U);
  config.path_mtu = 4096;
  EXPECT_EQ(open_backend(config).error,
            "mrc0: packets of 4096 bytes do not fit p2, whose MTU of 1500 leaves 1428");
}

}  // namespace
}  // namespace mrc::nic::test

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;
  if (!mrc::nic::test::shell("ip -V && nsenter -V") || ::geteuid() != 0) {
    return kSkipped;
  }
  // Whatever goes wrong, the machine's own network is out of reach.
  if (::unshare(CLONE_NEWNET) != 0) return kSkipped;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
