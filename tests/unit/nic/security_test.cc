// Devices that seal: over real sockets, with real keys.
#include "nic/io/security.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "seal/key_file.h"
#include "unit/nic/backend_fixture.h"
#include "wire/codec.h"

namespace mrc::nic::test {
namespace {

class SecurityTest : public testing::Test {
 protected:
  SecurityTest() {
    char name[] = "/tmp/mrc_security_XXXXXX";
    EXPECT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
  }
  ~SecurityTest() override { std::filesystem::remove_all(directory_); }

  std::string key_file(const char* name, unsigned id = 1) {
    const std::string path = directory_ + "/" + name;
    EXPECT_EQ(seal::create_key_file(
                  path, {seal::draw_cluster_key(seal::KeyId{static_cast<std::uint8_t>(id)})}),
              "");
    return path;
  }
  static node::DeviceConfig device(unsigned host, const std::string& key) {
    node::DeviceConfig config = private_device(2, host);
    config.security = key.empty() ? node::SecurityMode::kOff : node::SecurityMode::kSealed;
    config.key_file = key;
    return config;
  }

  std::string directory_;
};

struct Ends {
  Ends(const node::DeviceConfig& from, const node::DeviceConfig& to)
      : a(must_open(from)), b(must_open(to)), gid(to.planes[0].address) {}
  // Sends one write and gives what became of it.
  Collector exchange(std::size_t length) {
    payload = pattern(length);
    sent = write_packet(7, length);
    send_bytes(*a, route_to(*b, gid, 1, 5), sent, payload);
    a->flush();
    Collector collector;
    EXPECT_TRUE(collect(*b, collector, 1));
    return collector;
  }
  std::unique_ptr<Backend> a;
  std::unique_ptr<Backend> b;
  wire::IpAddress gid;
  wire::Packet sent;
  std::vector<std::byte> payload;
};

TEST_F(SecurityTest, SealedWritesArriveAsTheyWere) {
  const std::string key = key_file("key");
  Ends ends(device(1, key), device(2, key));
  for (const std::size_t length : {0, 1, 3, 255, 257, 1000, 1401}) {
    const Collector got = ends.exchange(length);
    ASSERT_EQ(got.arrived.size(), 1U) << length;
    wire::Packet packet;
    std::span<const std::byte> payload;
    ASSERT_EQ(wire::parse_transport(got.arrived[0].transport, packet, payload), DropReason::kNone);
    EXPECT_TRUE(got.arrived[0].icrc_good);
    EXPECT_EQ(packet.body, ends.sent.body);
    EXPECT_TRUE(std::ranges::equal(payload, ends.payload));
  }
}

TEST_F(SecurityTest, RunsOfSealedPacketsStayRuns) {
  const std::string key = key_file("key");
  Ends ends(device(1, key), device(2, key));
  constexpr unsigned kCount = 12;
  constexpr std::size_t kEach = 1024;
  wire::Packet first = write_packet(100, kCount * kEach);
  first.bth.opcode = wire::Opcode::kWriteMiddle;
  const std::vector<std::byte> bytes = pattern(kCount * kEach);
  ends.a->send_run(route_to(*ends.b, ends.gid, 1, 5), core::TrafficClass::kTrimmable, first, bytes,
                   kCount);
  ends.a->flush();
  Collector got;
  ASSERT_TRUE(collect(*ends.b, got, kCount));
  ASSERT_EQ(got.arrived.size(), kCount);
  for (unsigned i = 0; i < kCount; ++i) {
    wire::Packet packet;
    std::span<const std::byte> payload;
    ASSERT_EQ(wire::parse_transport(got.arrived[i].transport, packet, payload), DropReason::kNone);
    EXPECT_EQ(packet.bth.psn, Psn(100 + i));
    EXPECT_TRUE(std::ranges::equal(payload, std::span(bytes).subspan(i * kEach, kEach)));
  }
}

TEST_F(SecurityTest, PlainPacketsAreDroppedAndSaidOnce) {
  Ends ends(device(1, ""), device(2, key_file("key")));
  EXPECT_EQ(ends.exchange(100).dropped, std::vector{DropReason::kPlainPacket});
  EXPECT_EQ(ends.exchange(100).dropped, std::vector{DropReason::kPlainPacket});
  const std::vector<std::string> notices = ends.b->take_notices();
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_NE(notices[0].find("plain packets from"), std::string::npos) << notices[0];
  EXPECT_TRUE(ends.b->take_notices().empty());
}

TEST_F(SecurityTest, SealedPacketsAtAPlainDeviceAreDroppedAndSaidOnce) {
  Ends ends(device(1, key_file("key")), device(2, ""));
  EXPECT_EQ(ends.exchange(100).dropped, std::vector{DropReason::kSealedPacket});
  EXPECT_EQ(ends.exchange(100).dropped, std::vector{DropReason::kSealedPacket});
  EXPECT_EQ(ends.b->take_notices().size(), 1U);
}

TEST_F(SecurityTest, AnotherClusterIsAStranger) {
  Ends ends(device(1, key_file("one")), device(2, key_file("two")));
  EXPECT_EQ(ends.exchange(100).dropped, std::vector{DropReason::kBadSeal});
  EXPECT_EQ(ends.exchange(100).dropped, std::vector{DropReason::kBadSeal});
  const std::vector<std::string> notices = ends.b->take_notices();
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_NE(notices[0].find("another secret"), std::string::npos) << notices[0];
}

TEST_F(SecurityTest, AKeyThatIsNotHereIsSaidOnce) {
  Ends ends(device(1, key_file("one", 1)), device(2, key_file("two", 2)));
  EXPECT_EQ(ends.exchange(100).dropped, std::vector{DropReason::kBadSeal});
  EXPECT_EQ(ends.exchange(100).dropped, std::vector{DropReason::kBadSeal});
  const std::vector<std::string> notices = ends.b->take_notices();
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_NE(notices[0].find("their key is not in " + directory_ + "/two"), std::string::npos)
      << notices[0];
}

// Somebody who sends in the name of a peer that is all right must not have people look for a fault
// in their keys.
TEST_F(SecurityTest, AForgedPacketOfAPeerThatOpensIsNoNews) {
  const std::string key = key_file("key");
  const node::DeviceConfig good = device(1, key);
  Ends ends(good, device(2, key));
  ASSERT_EQ(ends.exchange(100).arrived.size(), 1U);
  ends.a.reset();
  ends.a = must_open(device(1, key_file("other")));
  EXPECT_EQ(ends.exchange(100).dropped, std::vector{DropReason::kBadSeal});
  EXPECT_TRUE(ends.b->take_notices().empty());
}

// Whoever cannot use our packets has sent us one of theirs at most; the other end hears of it from
// one packet of ours, whatever the two differ in.
TEST_F(SecurityTest, WhatIsWrongIsSaidAtBothEnds) {
  const std::string key = key_file("key");
  const std::string other = key_file("other");
  const std::string number = key_file("number", 2);
  struct Case {
    std::string from, to;
    DropReason there, here;
  };
  using enum DropReason;
  for (const Case& c :
       {Case{"", key, kPlainPacket, kSealedPacket}, Case{key, "", kSealedPacket, kPlainPacket},
        Case{key, other, kBadSeal, kBadSeal}, Case{key, number, kBadSeal, kBadSeal}}) {
    Ends ends(device(1, c.from), device(2, c.to));
    EXPECT_EQ(ends.exchange(100).dropped, std::vector{c.there});
    ends.b->on_wake();
    Collector heard;
    ASSERT_TRUE(collect(*ends.a, heard, 1));
    EXPECT_EQ(heard.dropped, std::vector{c.here});
    EXPECT_EQ(ends.a->take_notices().size(), 1U);
    EXPECT_EQ(ends.b->take_notices().size(), 1U);
    // And that is the end of it: nobody answers the same host again.
    ends.a->on_wake();
    ASSERT_TRUE(collect(*ends.b, heard, 2));
    ends.b->on_wake();
    Collector more;
    ends.a->receive(more, 64);
    EXPECT_EQ(more.total(), 0U);
    EXPECT_TRUE(ends.b->take_notices().empty());
  }
}

TEST_F(SecurityTest, ManyAddressesGetAtMostAsManyPackets) {
  Security security;
  ASSERT_EQ(security.open(device(1, key_file("key"))), "");
  std::vector<std::byte> plain(64);
  std::span<const std::byte> transport;
  for (std::uint32_t i = 0; i < 2'000; ++i)
    EXPECT_EQ(security.take(wire::ipv4_address(0x0A00'0000 + i), plain, core::TrimState::kWhole,
                            transport),
              DropReason::kPlainPacket);
  EXPECT_EQ(security.take_unaware().size(), 256U);
  EXPECT_TRUE(security.take_unaware().empty());
}

TEST_F(SecurityTest, KeysAreReadAgainWhenTheFileChanges) {
  const std::string one = key_file("one");
  const std::string two = key_file("two", 2);
  Ends ends(device(1, one), device(2, two));
  ASSERT_EQ(ends.exchange(10).dropped, std::vector{DropReason::kBadSeal});
  EXPECT_EQ(ends.b->take_notices().size(), 1U);  // that it lacks the key
  // The receiver learns the sender's key as its second one, as a rotation does.
  seal::ClusterKeys both = seal::load_key_file(two).keys;
  both.push_back(seal::load_key_file(one).keys.front());
  ASSERT_EQ(seal::replace_key_file(two, both), "");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (ends.b->take_notices().empty() && std::chrono::steady_clock::now() < end)
    ends.b->on_wake();
  EXPECT_EQ(ends.exchange(10).arrived.size(), 1U);
}

TEST_F(SecurityTest, WhatIsWrongWithTheKeyIsOneLine) {
  node::DeviceConfig config = device(1, directory_ + "/missing");
  EXPECT_NE(open_backend(config).error.find("missing"), std::string::npos);
  config.key_file = key_file("open");
  ASSERT_EQ(::chmod(config.key_file.c_str(), 0644), 0);
  const std::string error = open_backend(config).error;
  EXPECT_NE(error.find("security = sealed: "), std::string::npos) << error;
  EXPECT_EQ(error.find('\n'), std::string::npos);
}

TEST_F(SecurityTest, SealedPacketsFitTheInterface) {
  node::DeviceConfig plain = device(1, "");
  plain.path_mtu = 4096;
  node::DeviceConfig sealed = device(2, key_file("key"));
  sealed.path_mtu = 4096;
  EXPECT_EQ(must_open(plain)->path_mtu(), 4096U);
  EXPECT_EQ(must_open(sealed)->path_mtu(), 4096U);
}

}  // namespace
}  // namespace mrc::nic::test
