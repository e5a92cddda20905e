// What controllers do to a device that runs: ports, profiles, denied paths, probes, events.
#include <atomic>
#include <cerrno>
#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include "device_fixture.h"
#include "nic/engine/port_gate.h"

namespace mrc::nic::test {
namespace {

class DeviceControl : public LoopTest {
 protected:
  static constexpr std::uint64_t kProfile = 77;

  // A profile of structured EVs, online, two on each port.
  static void add_profile(Device& device) {
    ASSERT_EQ(device.node().update([](node::NodeSnapshot& s) {
      s.formats[5] = {.state = node::ProfileState::kOnline,
                      .kind = wire::EvKind::kStructured,
                      .field_widths = {32}};
      node::NodeEvProfile profile{.state = node::ProfileState::kOnline,
                                  .mode = node::EvMode::kExplicit,
                                  .format_id = 5,
                                  .min_active = 1,
                                  .event_mask = 3};
      for (std::uint8_t i = 0; i < 8; ++i) {
        node::ProfileEv ev{.port = static_cast<PortId>(i % 4 + 1), .populated = true};
        ev.value.bytes = {0, 1, 0xC0, i};
        profile.evs.push_back(ev);
      }
      s.ev_profiles[kProfile] = profile;
      return 0;
    }),
              0);
  }
  static std::uint32_t entropy(std::uint32_t i) { return 0x0001'C000 + i; }

  // Entropies of data packets from now on.
  std::set<std::uint32_t> watch_entropies(Arena& from, Arena& to) {
    std::mutex mutex;
    std::set<std::uint32_t> seen;
    LoopNet::FilterScope filter(*net, [&](const wire::Packet& packet, PortId, std::uint32_t e) {
      const std::lock_guard lock(mutex);
      if (wire::is_write(packet.bth.opcode)) seen.insert(e);
      return false;
    });
    EXPECT_EQ(a.post(write(from, to, from.size())), 0);
    EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
    filter.end();
    return seen;
  }
};

// Without a plane that is on at both ends nothing can move, though every packet arrives.
TEST_F(DeviceControl, APortThatIsOffTakesNothingWhoeverSends) {
  a.make_qp();
  b.make_qp();
  connect(a, b, {.timeout = 12, .linear_retries = 2, .exponential_retries = 2});
  Arena from(*a.device, a.domain, 4096);
  Arena to(*b.device, b.domain, 4096);
  ASSERT_EQ(a.post(write(from, to, from.size())), 0);
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
  to.clear();
  const auto leave = [](Device& device, PortMask on) {
    ASSERT_EQ(device.node().update([&](node::NodeSnapshot& s) {
      s.ports_enabled = on;
      return 0;
    }),
              0);
  };
  leave(*a.device, PortMask(0b0011));
  leave(*b.device, PortMask(0b1100));
  EXPECT_TRUE(eventually(
      [&] { return !a.device->port_active(PortId{4}) && !b.device->port_active(PortId{1}); }));
  std::this_thread::sleep_for(std::chrono::nanoseconds(2 * PortGate::kGraceNs));
  ASSERT_EQ(a.post(write(from, to, from.size())), 0);
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kRetryExceeded);
  EXPECT_TRUE(to.untouched(0, to.size()));
  constexpr auto kOff = static_cast<std::size_t>(DropReason::kPortOff);
  EXPECT_GT(b.device->report().engine.drops.at(kOff), 0U);
}

TEST_F(DeviceControl, DataThatIsNotTrimmedCarriesTheCodePointOfItsAddressVector) {
  a.make_qp();
  b.make_qp();
  ASSERT_EQ(a.qp->to_init({}), 0);
  ASSERT_EQ(b.qp->to_init({}), 0);
  for (const auto& [self, peer] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
    QpPeer to{.gid = peer->device->gid(), .dscp = 26, .settings = {}};
    to.settings.remote_qp = peer->qp->number();
    ASSERT_EQ(self->qp->to_rtr(to), 0);
    ASSERT_EQ(self->qp->to_rts({}), 0);
  }
  Arena from(*a.device, a.domain, 4096);
  Arena to(*b.device, b.domain, 4096);
  ASSERT_EQ(a.post(write(from, to, from.size())), 0);
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
  EXPECT_EQ(net->data_dscp(), 26);
}

TEST_F(DeviceControl, APortDisabledInMidTransferIsLeft) {
  make_pair();
  const std::unique_ptr<AsyncEvents> events = a.device->subscribe();
  Arena from(*a.device, a.domain, 1 << 20);
  Arena to(*b.device, b.domain, 1 << 20);
  from.fill(1);
  for (std::uint64_t i = 0; i < 32; ++i)
    ASSERT_EQ(a.post(write(from, to, from.size(), i)), 0);
  ASSERT_EQ(a.device->node().update([](node::NodeSnapshot& s) {
    s.ports_enabled = s.ports_enabled.without(PortId{2});
    return 0;
  }),
            0);
  EXPECT_TRUE(eventually([&] { return !a.device->port_active(PortId{2}); }));
  EXPECT_TRUE(a.device->port_active(PortId{1}));
  AsyncEvent event;
  ASSERT_EQ(events->wait(event), 0);
  EXPECT_EQ(event.kind, AsyncKind::kPortError);
  EXPECT_EQ(event.port, PortId{2});
  for (std::uint64_t i = 0; i < 32; ++i)
    ASSERT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
  EXPECT_EQ(to.first_wrong(0, to.size(), 1), to.size());
  std::atomic<unsigned> on_two{0};
  LoopNet::FilterScope filter(*net, [&](const wire::Packet& packet, PortId port, std::uint32_t) {
    if (port == PortId{2} && wire::is_write(packet.bth.opcode)) ++on_two;
    return false;
  });
  ASSERT_EQ(a.post(write(from, to, from.size())), 0);
  ASSERT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
  EXPECT_EQ(on_two, 0U);
  filter.end();
  ASSERT_EQ(a.device->node().update([](node::NodeSnapshot& s) {
    s.ports_enabled = PortMask::first(kMaxPorts);
    return 0;
  }),
            0);
  EXPECT_TRUE(eventually([&] { return a.device->port_active(PortId{2}); }));
  ASSERT_EQ(events->wait(event), 0);
  EXPECT_EQ(event.kind, AsyncKind::kPortActive);
}

TEST_F(DeviceControl, AProfileDecidesThePathsAndCountsItsUsers) {
  add_profile(*a.device);
  a.make_qp();
  b.make_qp();
  EXPECT_EQ(a.qp->to_init({.ev_profile = 78, .has_ev_profile = true}), EINVAL);
  EXPECT_EQ(a.qp->state(), core::QpState::kReset);
  EXPECT_FALSE(a.device->node().in_use(node::ProfileKind::kEv, kProfile));
  ASSERT_EQ(a.qp->to_init({.ev_profile = kProfile, .has_ev_profile = true}), 0);
  EXPECT_TRUE(a.device->node().in_use(node::ProfileKind::kEv, kProfile));
  connect(a, b);
  Arena from(*a.device, a.domain, 1 << 20);
  Arena to(*b.device, b.domain, 1 << 20);
  std::set<std::uint32_t> all;
  for (std::uint32_t i = 0; i < 8; ++i)
    all.insert(entropy(i));
  EXPECT_EQ(watch_entropies(from, to), all);

  // Denied while it runs, and allowed again.
  const auto deny = [&](bool denied) {
    ASSERT_EQ(a.device->node().update([&](node::NodeSnapshot& s) {
      s.ev_profiles[kProfile].evs[3].denied = denied;
      return 0;
    }),
              0);
    EXPECT_TRUE(eventually(
        [&] { return (a.qp->report().paths[3].state == core::EvState::kDenied) == denied; }));
  };
  deny(true);
  std::set<std::uint32_t> without = all;
  without.erase(entropy(3));
  EXPECT_EQ(watch_entropies(from, to), without);
  deny(false);
  a.qp.reset();
  EXPECT_FALSE(a.device->node().in_use(node::ProfileKind::kEv, kProfile));
}

TEST_F(DeviceControl, AQueuePairInUseFollowsItsProfiles) {
  static constexpr std::uint64_t kCcProfile = 9;
  constexpr std::uint32_t kSmall = 1 << 16;
  add_profile(*a.device);
  const auto set_window = [&](std::uint32_t bytes) {
    ASSERT_EQ(a.device->node().update([bytes](node::NodeSnapshot& s) {
      s.cc_profiles[kCcProfile].state = node::ProfileState::kOnline;
      s.cc_profiles[kCcProfile].cc.nscc.max_cwnd = bytes;
      return 0;
    }),
              0);
  };
  set_window(1 << 20);
  a.make_qp();
  b.make_qp();
  ASSERT_EQ(a.qp->to_init({.ev_profile = kProfile,
                           .cc_profile = kCcProfile,
                           .has_ev_profile = true,
                           .has_cc_profile = true}),
            0);
  connect(a, b);
  Arena from(*a.device, a.domain, 1 << 20);
  Arena to(*b.device, b.domain, 1 << 20);
  for (std::uint64_t i = 0; i < 32; ++i)
    ASSERT_EQ(a.post(write(from, to, from.size(), i)), 0);
  ASSERT_EQ(a.device->node().update([](node::NodeSnapshot& s) {
    s.ev_profiles[kProfile].evs[3].value.bytes[3] = 100;
    return 0;
  }),
            0);
  set_window(kSmall);
  EXPECT_TRUE(eventually([&] { return a.qp->report().paths[3].entropy == entropy(100); }));
  EXPECT_TRUE(eventually([&] { return a.qp->report().status.window_bytes <= kSmall; }));
  for (std::uint64_t i = 0; i < 32; ++i)
    ASSERT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
  std::set<std::uint32_t> paths{entropy(100)};
  for (std::uint32_t i = 0; i < 8; ++i)
    if (i != 3) paths.insert(entropy(i));
  EXPECT_EQ(watch_entropies(from, to), paths);
}

// A network that trims has to be named: by the device, or by a profile, and the peer must answer.
TEST_F(DeviceControl, DataMayBeTrimmedWhereSomebodySaysSo) {
  constexpr std::uint64_t kCcProfile = 9;
  const auto set_trimming = [&](node::Trimming trimming) {
    ASSERT_EQ(a.device->node().update([=](node::NodeSnapshot& s) {
      node::NodeCcProfile& profile = s.cc_profiles[9];
      profile.state = node::ProfileState::kOnline;
      profile.trimming = trimming;
      return 0;
    }),
              0);
  };
  set_trimming(node::Trimming::kAsDevice);
  const auto trimmable = [&](bool peer_answers) {
    a.make_qp();
    b.make_qp();
    Arena from(*a.device, a.domain, 1 << 16);
    Arena to(*b.device, b.domain, 1 << 16);
    EXPECT_EQ(a.qp->to_init({.cc_profile = kCcProfile, .has_cc_profile = true}), 0);
    connect(a, b, {}, {.peer_nacks_trims = peer_answers});
    const unsigned before = net->trimmable();
    EXPECT_EQ(a.post(write(from, to, from.size())), 0);
    EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
    return net->trimmable() > before;
  };
  EXPECT_FALSE(trimmable(true)) << "the device does not say so";
  set_trimming(node::Trimming::kOn);
  EXPECT_TRUE(eventually([&] { return trimmable(true); }));
  EXPECT_FALSE(trimmable(false)) << "a trimmed packet would be lost without a word";
}

// The mask in force is the profile's of today, not the one that the queue pair was set up with.
TEST_F(DeviceControl, ABadPathIsToldToListeners) {
  add_profile(*a.device);
  const auto set_mask = [&](std::uint32_t mask) {
    ASSERT_EQ(a.device->node().update([mask](node::NodeSnapshot& s) {
      s.ev_profiles[kProfile].event_mask = mask;
      return 0;
    }),
              0);
  };
  set_mask(0);
  const std::unique_ptr<node::NodeState::Listener> listener = a.device->node().listen();
  ASSERT_NE(listener, nullptr);
  a.make_qp();
  b.make_qp();
  ASSERT_EQ(a.qp->to_init({.ev_profile = kProfile, .has_ev_profile = true}), 0);
  connect(a, b);
  set_mask(3);
  Arena from(*a.device, a.domain, 1 << 20);
  Arena to(*b.device, b.domain, 1 << 20);
  LoopNet::FilterScope filter(
      *net, [&](const wire::Packet&, PortId, std::uint32_t e) { return e == entropy(5); });
  ASSERT_EQ(a.post(write(from, to, from.size())), 0);
  ASSERT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
  node::NodeEvEvent event;
  EXPECT_TRUE(eventually([&] { return listener->next(event) && event.ev.value.bytes[3] == 5; }));
  EXPECT_EQ(event.profile_id, kProfile);
  EXPECT_EQ(event.state, core::EvState::kAssumedBad);
  EXPECT_EQ(event.ev.port, PortId{2});
}

TEST_F(DeviceControl, AReplacedPathThatComesBackIsNotThoughtIllOf) {
  add_profile(*a.device);
  a.make_qp();
  b.make_qp();
  ASSERT_EQ(a.qp->to_init({.ev_profile = kProfile, .has_ev_profile = true}), 0);
  connect(a, b);
  Arena from(*a.device, a.domain, 1 << 20);
  Arena to(*b.device, b.domain, 1 << 20);
  LoopNet::FilterScope filter(
      *net, [&](const wire::Packet&, PortId, std::uint32_t e) { return e == entropy(5); });
  ASSERT_EQ(a.post(write(from, to, from.size())), 0);
  ASSERT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
  filter.end();
  node::NodeState& node = a.device->node();
  ASSERT_TRUE(eventually([&] { return node.ev_opinions(kProfile).size() == 1; }));
  const auto put = [&](std::uint8_t value) {
    ASSERT_EQ(node.update([&](node::NodeSnapshot& s) {
      s.ev_profiles[kProfile].evs[5].value.bytes[3] = value;
      return 0;
    }),
              0);
    EXPECT_TRUE(eventually([&] { return a.qp->report().paths[5].entropy == entropy(value); }));
  };
  put(100);
  EXPECT_TRUE(eventually([&] { return node.ev_opinions(kProfile).empty(); }));
  put(5);
  EXPECT_TRUE(node.ev_opinions(kProfile).empty());
}

TEST_F(DeviceControl, ProbesAnswerWithTheirRoundTrip) {
  std::vector<EndpointRequest> requests;
  for (std::uint16_t i = 0; i < 8; ++i) {
    EndpointRequest request{.id = static_cast<std::uint16_t>(500 + i),
                            .peer = b.device->gid(),
                            .port = static_cast<PortId>(i % 4 + 1),
                            .kind = wire::EvKind::kStructured};
    request.ev.bytes = {0, 0, 0xC1, static_cast<std::uint8_t>(i)};
    requests.push_back(request);
  }
  std::vector<EndpointAnswer> answers;
  ASSERT_EQ(a.device->endpoint_requests(requests, 10 * kSecondNs, answers), 0);
  ASSERT_EQ(answers.size(), 8U);
  std::set<std::uint16_t> ids;
  for (const EndpointAnswer& answer : answers) {
    ids.insert(answer.id);
    EXPECT_GT(answer.rtt_ns, 0);
  }
  EXPECT_EQ(ids.size(), 8U);

  // One path is dead: the others answer, and the call says that one is missing.
  LoopNet::FilterScope filter(*net, [&](const wire::Packet& packet, PortId port, std::uint32_t) {
    return packet.bth.opcode == wire::Opcode::kEndpointRequest && port == PortId{3};
  });
  EXPECT_EQ(a.device->endpoint_requests(requests, 200 * kMillisecondNs, answers), ETIMEDOUT);
  EXPECT_EQ(answers.size(), 6U);
  requests[0].port = PortId{5};
  EXPECT_EQ(a.device->endpoint_requests(requests, kMillisecondNs, answers), EINVAL);
  EXPECT_TRUE(answers.empty());
}

// A lost probe says something of its path, and goes out once. A port status is told until it is
// heard: it may be lost, or come before the peer knows of us, and then nobody answers it.
TEST_F(DeviceControl, APortStatusIsToldUntilItIsAnswered) {
  std::atomic<unsigned> sent{0};
  std::latch asked_thrice(1);
  std::vector<EndpointRequest> requests{
      {.id = 1, .peer = b.device->gid(), .port_status = true, .ports = PortMask::first(4)}};
  std::vector<EndpointAnswer> answers;
  {
    const LoopNet::FilterScope filter(*net, [&](const wire::Packet& packet, PortId, std::uint32_t) {
      const bool asks = packet.bth.opcode == wire::Opcode::kEndpointRequest;
      if (asks && ++sent == 3) asked_thrice.count_down();
      return false;
    });
    std::thread peer([&] {
      asked_thrice.wait();
      make_pair();
    });
    EXPECT_EQ(a.device->endpoint_requests(requests, 20 * kSecondNs, answers), 0);
    peer.join();
  }
  EXPECT_EQ(answers.size(), 1U);
  EXPECT_GE(sent, 3U);  // the peer knows of us from the third on

  requests[0].port_status = false;
  sent = 0;
  const LoopNet::FilterScope filter(*net, [&](const wire::Packet& packet, PortId, std::uint32_t) {
    return packet.bth.opcode == wire::Opcode::kEndpointRequest && ++sent > 0;
  });
  EXPECT_EQ(a.device->endpoint_requests(requests, 50 * kMillisecondNs, answers), ETIMEDOUT);
  EXPECT_EQ(sent, 1U);
}

TEST_F(DeviceControl, ReportsWhatItIsMadeOf) {
  make_pair();
  const DeviceReport report = a.device->report();
  EXPECT_EQ(report.process, 0);
  EXPECT_EQ(report.path_mtu, 4096U);
  EXPECT_EQ(report.queue_pairs, 1U);
  ASSERT_EQ(report.ports.size(), 4U);
  EXPECT_EQ(report.ports[2].port, PortId{3});
  EXPECT_TRUE(report.ports[2].enabled && report.ports[2].link_up);
  const QpReport qp = a.qp->report();
  EXPECT_EQ(qp.peer, b.device->gid());
  EXPECT_EQ(qp.remote_qp, b.qp->number());
  EXPECT_EQ(qp.failure, core::CompletionStatus::kSuccess);
  EXPECT_TRUE(qp.explanation.empty());
  EXPECT_EQ(qp.paths.size(), 32U);
}

}  // namespace
}  // namespace mrc::nic::test
