// Packets that somebody makes up in the name of a peer while data flows: from the peer's address
// and one of its source ports, with a right ICRC, and right in all respects but one. Each is
// dropped for the reason that it must meet and nothing else changes. Returns 77 without the right
// to make up packets in a network namespace of its own.
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/planted_bug.h"
#include "os/descriptor.h"
#include "support/results.h"
#include "unit/nic/device_udp_fixture.h"
#include "wire/frame.h"

namespace mrc::nic::test {
namespace {

constexpr unsigned kRounds = 400;  // of each packet
constexpr std::size_t kMessageBytes = 1 << 20;
constexpr std::uint32_t kAhead = 200;  // PSNs beyond the newest: inside the window of 1,024
constexpr unsigned kUnderWay = 4;      // messages
constexpr std::size_t kMostHeaders = 256;
constexpr unsigned kVolley = 256;           // of the flood, from one look at the queue pairs
constexpr std::uint64_t kMostPerDrop = 20;  // packets of the flood: full sockets take none

struct Options {
  std::uint64_t flood = 20'000;  // packets that reach an engine
  const char* results = nullptr;
  const char* planted_bug = nullptr;
};
Options options;

class Forger {
 public:
  explicit Forger(const node::DeviceConfig& config)
      : raw_(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW)) {
    format_.ethernet = false;
    format_.udp_port = config.udp_port;
    format_.dscp = config.dscp;
  }

  // In the name of `from`, on one of the paths that it uses.
  void send(const node::DeviceConfig& from, const node::DeviceConfig& to, const PathReport& path,
            const wire::Packet& packet, std::span<const std::byte> payload = {}) {
    const std::size_t plane = static_cast<std::size_t>(path.port) - 1;
    const wire::FrameHeader header{.source = from.planes[plane].address,
                                   .destination = to.planes[plane].address,
                                   .dscp = format_.dscp.no_trim,
                                   .entropy = path.entropy};
    std::array<std::byte, core::kMaxPathMtu + kMostHeaders> frame{};
    const std::array pieces = {payload};
    const std::size_t length = wire::build_frame(format_, header, packet, pieces, frame);
    ASSERT_GT(length, 0U);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    std::memcpy(&address.sin_addr, &frame[16], sizeof address.sin_addr);
    // A full queue takes none; the next one does.
    [[maybe_unused]] const auto sent =
        ::sendto(raw_.get(), frame.data(), length, 0, reinterpret_cast<const sockaddr*>(&address),
                 sizeof address);  // NOLINT
  }

 private:
  wire::FrameFormat format_;
  os::Descriptor raw_;
};

// A stream of writes from a to b, each of which must succeed, and the forger beside it.
class ForgerTest : public UdpDevicesTest {
 protected:
  ForgerTest() : UdpDevicesTest(1) {}

  void SetUp() override {
    UdpDevicesTest::SetUp();
    a.make_qp();
    b.make_qp();
    connect(a, b);
    source_ = std::make_unique<Arena>(*a.device, a.domain, kMessageBytes);
    target_ = std::make_unique<Arena>(*b.device, b.domain, kMessageBytes);
    source_->fill(1);
    bytes_.resize(a.device->path_mtu());
    packets_each_ = static_cast<std::uint32_t>(kMessageBytes / bytes_.size());
    first_psn_ = a.qp->report().status.next_psn;
    stream_ = std::thread([this] { stream(); });
    ASSERT_TRUE(eventually([this] { return done_ > 2 * kUnderWay; }));
  }

  void TearDown() override {
    over_ = true;
    stream_.join();
    EXPECT_EQ(failed_, core::CompletionStatus::kSuccess) << a.qp->report().explanation;
    EXPECT_EQ(a.qp->state(), core::QpState::kReadyToSend);
    EXPECT_EQ(b.qp->state(), core::QpState::kReadyToSend);
    EXPECT_EQ(target_->first_wrong(0, kMessageBytes, 1), kMessageBytes);
    EXPECT_TRUE(target_->guards_intact());
  }

  // `make` is called for each packet; its victim drops some of them for that reason, and all data
  // goes on. The true packet may overtake one, which is then dropped as a duplicate or as stale.
  void forge(
      Side& liar, Side& victim, DropReason reason,
      const std::function<void(const core::QpStatus& sender, const PathReport& path)>& make) {
    const auto dropped = [&] {
      return victim.device->report().engine.drops[static_cast<std::size_t>(reason)];
    };
    const std::uint64_t before = dropped();
    const std::uint64_t done = done_;
    for (unsigned round = 0; round < kRounds; ++round) {
      const QpReport at = liar.qp->report();
      const core::QpStatus sender = &liar == &a ? at.status : a.qp->report().status;
      make(sender, at.paths[round % at.paths.size()]);
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    const std::string name = drop_reason_name(reason);
    EXPECT_TRUE(eventually([&] { return dropped() >= before + kRounds / 20; }))
        << name << ": " << dropped() - before;
    EXPECT_TRUE(eventually([&] { return done_ >= done + kUnderWay; })) << "held up: " << name;
  }

  // What b would get at that PSN.
  wire::Packet write_at(Psn psn) const {
    const std::uint32_t number = (psn.value() - first_psn_.value()) & 0xFF'FFFF;
    const std::uint32_t at = number % packets_each_;
    wire::Packet packet;
    packet.bth.opcode = at == 0                   ? wire::Opcode::kWriteFirst
                        : at + 1 == packets_each_ ? wire::Opcode::kWriteLast
                                                  : wire::Opcode::kWriteMiddle;
    packet.bth.destination = b.qp->number();
    packet.bth.psn = psn;
    packet.body = wire::Write{.msn = static_cast<std::uint16_t>(number / packets_each_),
                              .timestamp = {},
                              .address = target_->address() + std::uint64_t{at} * bytes_.size(),
                              .key = Rkey{target_->keys().remote},
                              .message_length = kMessageBytes};
    return packet;
  }
  wire::Packet answer(wire::Opcode opcode, Psn psn) const {
    wire::Packet packet;
    packet.bth.opcode = opcode;
    packet.bth.destination = a.qp->number();
    packet.bth.psn = psn;
    return packet;
  }

 public:
  // What is right in all respects but one, by that one.
  void wrong_message_number(const core::QpStatus& sender, const PathReport& path) {
    wire::Packet packet = write_at(sender.next_psn + kAhead);
    std::get<wire::Write>(packet.body).msn += 2 * kAhead;
    tell_b(path, packet, bytes_);
  }
  // Within a message: without a key an empty one may come in its turn where a message begins.
  void empty_write(const core::QpStatus& sender, const PathReport& path) {
    wire::Packet packet = write_at(sender.next_psn + kAhead);
    if (wire::starts_message(packet.bth.opcode)) packet = write_at(sender.next_psn + kAhead + 1);
    packet.bth.opcode = wire::Opcode::kWriteOnly;
    auto& write = std::get<wire::Write>(packet.body);
    write.key = Rkey{0xBAD};
    write.message_length = 0;
    tell_b(path, packet);
  }
  void old_write(const core::QpStatus& sender, const PathReport& path) {
    tell_b(path, write_at(sender.oldest_unacknowledged - 5 * sender.window_psns), bytes_);
  }
  void sack_of_another(const core::QpStatus& sender, const PathReport& path) {
    wire::Packet packet = answer(wire::Opcode::kSack, Psn{});
    packet.body = wire::Sack{.entropy = path.entropy,
                             .source_context = wrong_context(),
                             .destination_context = low_half(a.qp->number()),
                             .cumulative = sender.next_psn - 1};
    tell_a(path, packet);
  }
  void nack_of_another(const core::QpStatus& sender, const PathReport& path) {
    wire::Packet packet = answer(wire::Opcode::kNack, Psn{});
    packet.body = wire::Nack{.reason = wire::NackReason::kUnexpectedEvent,
                             .entropy = path.entropy,
                             .source_context = wrong_context(),
                             .destination_context = low_half(a.qp->number()),
                             .psn = sender.oldest_unacknowledged};
    tell_a(path, packet);
  }
  void probe_of_another(const core::QpStatus& /*sender*/, const PathReport& path) {
    wire::Packet packet = answer(wire::Opcode::kProbe, Psn{});
    packet.body = wire::Probe{.source_context = wrong_context(),
                              .destination_context = low_half(a.qp->number())};
    tell_a(path, packet);
  }
  void port_status(const core::QpStatus& /*sender*/, const PathReport& path) {
    for (const std::uint32_t id : {1U, 0x8001U}) {
      wire::Packet packet = answer(wire::Opcode::kEndpointRequest, Psn(id));
      packet.bth.destination = kEndpointQp;
      packet.body =
          wire::EndpointRequest{.op = wire::EndpointOp::kPortStatusUpdate, .port_status = 1};
      tell_a(path, packet);
    }
  }

 protected:
  using Lie = void (ForgerTest::*)(const core::QpStatus&, const PathReport&);
  auto lie(Lie make) {
    return [this, make](const core::QpStatus& sender, const PathReport& path) {
      (this->*make)(sender, path);
    };
  }

  std::uint64_t messages() const { return done_; }
  // Packets that met one of the checks that stand between a stranger and a queue pair.
  std::uint64_t refused() const {
    constexpr DropReason kReasons[] = {DropReason::kWrongNumber, DropReason::kNoBuffer,
                                       DropReason::kFarOutOfWindow, DropReason::kWrongContext,
                                       DropReason::kUnproven};
    std::uint64_t packets = 0;
    for (const Side* side : {&a, &b}) {
      const auto drops = side->device->report().engine.drops;
      for (const DropReason reason : kReasons)
        packets += drops[static_cast<std::size_t>(reason)];
    }
    return packets;
  }

  std::vector<std::byte> bytes_;  // a forged payload
  static std::uint16_t low_half(QpNumber number) { return static_cast<std::uint16_t>(number); }

  std::uint16_t wrong_context() const {
    return static_cast<std::uint16_t>(low_half(b.qp->number()) + 1);
  }

  void tell_a(const PathReport& path, const wire::Packet& packet) {
    forger().send(b.device->config(), a.device->config(), path, packet);
  }
  void tell_b(const PathReport& path, const wire::Packet& packet,
              std::span<const std::byte> payload = {}) {
    forger().send(a.device->config(), b.device->config(), path, packet, payload);
  }

 private:
  Forger& forger() {
    if (!forger_) forger_ = std::make_unique<Forger>(a.device->config());
    return *forger_;
  }

  void stream() {
    const std::array buffers = {source_->buffer(0, kMessageBytes)};
    std::uint64_t posted = 0;
    while (failed_ == core::CompletionStatus::kSuccess && (!over_ || done_ < posted)) {
      while (!over_ && posted < done_ + kUnderWay) {
        const SendWork work{.id = ++posted,
                            .buffers = buffers,
                            .remote_address = target_->address(),
                            .remote_key = target_->keys().remote};
        EXPECT_EQ(a.post(work), 0);
      }
      const WorkCompletion completion = a.next_completion();
      failed_ = completion.status;
      ++done_;
    }
  }

  std::unique_ptr<Forger> forger_;
  std::unique_ptr<Arena> source_;
  std::unique_ptr<Arena> target_;
  std::uint32_t packets_each_ = 0;  // in a message
  Psn first_psn_;
  std::thread stream_;
  std::atomic<bool> over_ = false;
  std::atomic<std::uint64_t> done_ = 0;
  std::atomic<core::CompletionStatus> failed_ = core::CompletionStatus::kSuccess;
};

TEST_F(ForgerTest, WritesWithAWrongMessageNumberAreDropped) {
  forge(a, b, DropReason::kWrongNumber, lie(&ForgerTest::wrong_message_number));
}

TEST_F(ForgerTest, AWriteWithAWrongKeyEndsNothing) {
  Psn told;
  forge(a, b, DropReason::kAccessDenied, [&](const core::QpStatus& sender, const PathReport& path) {
    if (sender.next_psn == told) return;
    told = sender.next_psn;
    wire::Packet packet = write_at(sender.next_psn + kAhead);
    std::get<wire::Write>(packet.body).key = Rkey{0xBAD};
    tell_b(path, packet, bytes_);
  });
}

TEST_F(ForgerTest, AnEmptyWriteTakesNobodysPlace) {
  forge(a, b, DropReason::kNoBuffer, lie(&ForgerTest::empty_write));
}

TEST_F(ForgerTest, WritesFromLongBeforeAreNotAnswered) {
  forge(a, b, DropReason::kFarOutOfWindow, lie(&ForgerTest::old_write));
}

TEST_F(ForgerTest, SacksMustNameBothQueuePairs) {
  forge(b, a, DropReason::kWrongContext, lie(&ForgerTest::sack_of_another));
}

TEST_F(ForgerTest, NacksMustNameBothQueuePairs) {
  forge(b, a, DropReason::kWrongContext, lie(&ForgerTest::nack_of_another));
}

TEST_F(ForgerTest, ProbesMustNameBothQueuePairs) {
  forge(b, a, DropReason::kWrongContext, lie(&ForgerTest::probe_of_another));
}

// Said again of the same packet while that is under way it would be believed.
TEST_F(ForgerTest, ANakThatIsSaidOnceEndsNothing) {
  Psn told;
  forge(b, a, DropReason::kUnproven, [&](const core::QpStatus& sender, const PathReport& path) {
    if (sender.oldest_unacknowledged == told) return;
    told = sender.oldest_unacknowledged;
    wire::Packet packet = answer(wire::Opcode::kAck, sender.oldest_unacknowledged);
    packet.body = wire::Ack{.syndrome = wire::kSyndromeNakRemoteAccess,
                            .msn = static_cast<std::uint32_t>(sender.counters.messages_completed)};
    tell_a(path, packet);
  });
}

TEST_F(ForgerTest, PortStatusIsAHint) {
  forge(b, a, DropReason::kUnproven, lie(&ForgerTest::port_status));
  // All four planes carry data again, each of them.
  for (unsigned plane = 0; plane < 4; ++plane) {
    const auto carried = [&] { return a.device->report().ports[plane].counters.packets_sent; };
    const std::uint64_t before = carried();
    EXPECT_TRUE(eventually([&] { return carried() > before + 100; })) << plane;
  }
}

// As fast as the kernel takes them, all kinds in turn.
TEST_F(ForgerTest, AFloodOfThemHoldsNothingUp) {
  constexpr Lie kKinds[] = {&ForgerTest::wrong_message_number,
                            &ForgerTest::empty_write,
                            &ForgerTest::old_write,
                            &ForgerTest::sack_of_another,
                            &ForgerTest::nack_of_another,
                            &ForgerTest::probe_of_another,
                            &ForgerTest::port_status};
  const std::uint64_t done = messages();
  std::uint64_t told = 0;
  std::uint64_t reached = 0;
  for (unsigned volley = 0; reached < options.flood && told < options.flood * kMostPerDrop;
       ++volley) {
    const core::QpStatus sender = a.qp->report().status;
    const auto paths = (volley % 2 == 0 ? a : b).qp->report().paths;
    for (unsigned i = 0; i < kVolley; ++i, ++told)
      (this->*kKinds[i % std::size(kKinds)])(sender, paths[told % paths.size()]);
    reached = refused();
  }
  EXPECT_GE(reached, options.flood) << "of " << told << " packets";
  EXPECT_TRUE(eventually([&] { return messages() >= done + kUnderWay; })) << "held up";
  if (options.results != nullptr) {
    EXPECT_TRUE(mrc::test::write_results(
        options.results, "forger",
        {{"packets forged on sockets", reached}, {"messages beside them", messages() - done}}));
  }
}

// Switches one check off, so that it can be seen that it is missed.
void plant(const char* wanted) {
#ifdef MRC_PLANTED_BUGS
  unsigned number = 0;
  for (const PlantedBugInfo& bug : kPlantedBugs) {
    if (std::strcmp(bug.name, wanted) == 0) active_planted_bug = static_cast<PlantedBug>(number);
    ++number;
  }
#else
  static_cast<void>(wanted);
#endif
}

bool in_a_network_of_its_own() {
  if (::unshare(CLONE_NEWNET) != 0) return false;
  const os::Descriptor any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", sizeof request.ifr_name - 1);
  request.ifr_flags = IFF_UP;
  return ::ioctl(any.get(), SIOCSIFFLAGS, &request) == 0;
}

Options read_options(int argc, char** argv) {
  Options read;
  for (int i = 1; i < argc; ++i) {
    const bool has_value = i + 1 < argc;
    if (has_value && std::strcmp(argv[i], "--flood") == 0) {
      read.flood = std::strtoull(argv[++i], nullptr, 10);
    } else if (has_value && std::strcmp(argv[i], "--results") == 0) {
      read.results = argv[++i];
    } else {
      read.planted_bug = argv[i];
    }
  }
  return read;
}

}  // namespace
}  // namespace mrc::nic::test

// Usage: forger_test [options of gtest] [--flood PACKETS] [--results FILE] [PLANTED BUG]
int main(int argc, char** argv) {
  using namespace mrc::nic::test;
  constexpr int kSkipped = 77;
  ::testing::InitGoogleTest(&argc, argv);
  options = read_options(argc, argv);
  if (!in_a_network_of_its_own()) return kSkipped;
  if (options.planted_bug != nullptr) plant(options.planted_bug);
  return RUN_ALL_TESTS();
}
