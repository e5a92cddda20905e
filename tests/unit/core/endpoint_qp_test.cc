// Queue pairs: creation, the way from RESET to RTS, failure, and the work posted to them.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "unit/core/endpoint_fixture.h"

namespace mrc::core {
namespace {

TEST(QpLifeCycle, GoesFromResetToRtsAndNoOtherWay) {
  Engine e;
  EXPECT_EQ(e.init().code(), ErrorCode::kNotFound);
  ASSERT_TRUE(e.create().ok());
  EXPECT_EQ(e.to_rtr().code(), ErrorCode::kWrongState);
  ASSERT_TRUE(e.init().ok());
  EXPECT_EQ(e.init().code(), ErrorCode::kWrongState);
  EXPECT_EQ(e.to_rts().code(), ErrorCode::kWrongState);
  ASSERT_TRUE(e.to_rtr().ok());
  EXPECT_EQ(e.status().state, QpState::kReadyToReceive);
  EXPECT_EQ(e.post(64).code(), ErrorCode::kWrongState);
  ASSERT_TRUE(e.to_rts().ok());
  EXPECT_EQ(e.status().state, QpState::kReadyToSend);
  EXPECT_TRUE(e.post(64).ok());
}

TEST(QpLifeCycle, NumbersAreUniqueAndInRange) {
  Engine e;
  EXPECT_EQ(e.create(QpNumber{2}).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(e.create(QpNumber{0x100'0000}).code(), ErrorCode::kInvalidArgument);
  ASSERT_TRUE(e.create(QpNumber{0xFF'FFFF}).ok());
  EXPECT_EQ(e.create(QpNumber{0xFF'FFFF}).code(), ErrorCode::kAlreadyExists);
}

TEST(QpLifeCycle, ThereIsRoomForSoManyAndItIsUsedAgain) {
  Engine e(EndpointConfig{.max_qps = 2});
  ASSERT_TRUE(e.create(QpNumber{10}).ok());
  ASSERT_TRUE(e.create(QpNumber{11}).ok());
  EXPECT_EQ(e.create(QpNumber{12}).code(), ErrorCode::kNoSpace);
  ASSERT_TRUE(e.endpoint->destroy_qp(QpNumber{10}).ok());
  EXPECT_TRUE(e.create(QpNumber{12}).ok());
  EXPECT_EQ(e.endpoint->query_qp(QpNumber{10}).status().code(), ErrorCode::kNotFound);
}

TEST(QpLifeCycle, PeersToo) {
  Engine e(EndpointConfig{.max_peers = 1});
  e.connect(QpNumber{10}, kPeer);
  ASSERT_TRUE(e.create(QpNumber{11}).ok());
  ASSERT_TRUE(e.init(QpNumber{11}).ok());
  EXPECT_EQ(e.to_rtr(QpNumber{11}, kOtherPeer).code(), ErrorCode::kNoSpace);
  ASSERT_TRUE(e.endpoint->reset_qp(QpNumber{10}).ok());
  EXPECT_TRUE(e.to_rtr(QpNumber{11}, kOtherPeer).ok());
}

TEST(QpLifeCycle, ArgumentsAreCheckedAndARefusalChangesNothing) {
  Engine e;
  EXPECT_EQ(e.endpoint->create_qp({.number = kQp, .max_sends = 0}).code(),
            ErrorCode::kInvalidArgument);
  ASSERT_TRUE(e.create().ok());
  const EvProfile empty;
  EXPECT_EQ(e.endpoint->init_qp(kQp, {.ev_profile = &empty}).code(), ErrorCode::kInvalidArgument);
  const EvEntry elsewhere{.entropy = 1, .port = PortId{9}};
  const EvProfile far = EvProfile::create({&elsewhere, 1}).value();
  EXPECT_EQ(e.endpoint->init_qp(kQp, {.ev_profile = &far}).code(), ErrorCode::kInvalidArgument);
  ASSERT_TRUE(e.init().ok());
  const QpReadyToReceive good{.remote = kPeer, .remote_qp = kPeerQp};
  const std::function<void(QpReadyToReceive&)> wrongs[] = {
      [](auto& rtr) { rtr.path_mtu = 1'022; }, [](auto& rtr) { rtr.path_mtu = 252; },
      [](auto& rtr) { rtr.path_mtu = 8'196; }, [](auto& rtr) { rtr.mpr_dest = 0; },
      [](auto& rtr) { rtr.remote_qp = QpNumber{1}; }};
  for (const auto& wrong : wrongs) {
    QpReadyToReceive rtr = good;
    wrong(rtr);
    EXPECT_EQ(e.endpoint->ready_to_receive(kQp, rtr).code(), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(e.status().state, QpState::kInit);
  ASSERT_TRUE(e.to_rtr().ok());
  for (const QpReadyToSend& rts :
       {QpReadyToSend{.mpr = 0}, QpReadyToSend{.timeout = kMaxTimeout + 1},
        QpReadyToSend{.linear_retries = kMaxLinearRetries + 1},
        QpReadyToSend{.exponential_retries = kMaxExponentialRetries + 1}}) {
    EXPECT_EQ(e.endpoint->ready_to_send(e.now, kQp, rts).code(), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(e.status().state, QpState::kReadyToReceive);
}

TEST(QpLifeCycle, FailingFlushesAndSaysSo) {
  Engine e;
  e.connect();
  ASSERT_TRUE(e.post(64, 5).ok());
  ASSERT_TRUE(e.endpoint->post_receive(kQp, {.id = 6}).ok());
  e.drain();
  e.events();
  ASSERT_TRUE(e.endpoint->fail_qp(e.now, kQp).ok());
  const std::vector<Completion> done = e.completions();
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].status, CompletionStatus::kFlushed);
  EXPECT_EQ(done[1].status, CompletionStatus::kFlushed);
  const std::vector<Event> events = e.events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, EventKind::kQpError);
  EXPECT_EQ(events[0].qp, kQp);
  EXPECT_EQ(e.status().state, QpState::kError);
  EXPECT_EQ(e.status().peer_bytes_in_flight, 0);
  EXPECT_EQ(e.endpoint->post_receive(kQp, {}).code(), ErrorCode::kWrongState);
  EXPECT_EQ(e.endpoint->next_deadline(), kNever);
}

TEST(QpLifeCycle, AResetForgetsWorkAndCompletions) {
  Engine e;
  e.connect();
  ASSERT_TRUE(e.post(64).ok());
  ASSERT_TRUE(e.endpoint->fail_qp(e.now, kQp).ok());
  ASSERT_TRUE(e.endpoint->reset_qp(kQp).ok());
  EXPECT_TRUE(e.completions().empty());
  EXPECT_EQ(e.status().state, QpState::kReset);
  EXPECT_TRUE(e.drain().empty());
  EXPECT_TRUE(e.init().ok()) << "and starts anew";
}

TEST(QpLifeCycle, CompletionsThatWaitedDieWithTheirQueuePairAndNoOther) {
  Engine e;
  e.connect(QpNumber{10});
  e.connect(QpNumber{11});
  for (const QpNumber qp : {QpNumber{10}, QpNumber{11}}) {
    ASSERT_TRUE(e.post(64, 1, qp).ok());
    ASSERT_TRUE(e.endpoint->fail_qp(e.now, qp).ok());
  }
  ASSERT_TRUE(e.endpoint->destroy_qp(QpNumber{10}).ok());
  const std::vector<Completion> done = e.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].qp, QpNumber{11});
}

TEST(QpLifeCycle, AnAnswerThatWaitedDiesWithItsQueuePair) {
  Engine e;
  e.connect();
  ASSERT_EQ(e.take(Engine::write(0)).drop, DropReason::kNone);
  ASSERT_TRUE(e.endpoint->destroy_qp(kQp).ok());
  e.connect();
  EXPECT_TRUE(e.drain().empty()) << "also when the number is used again";
}

TEST(QpProfiles, WithoutOneThePathsAreOurOwn) {
  Engine e;
  ASSERT_TRUE(e.create().ok());
  ASSERT_TRUE(e.endpoint->init_qp(kQp, {.cc = {.algorithm = CcAlgorithm::kNone}}).ok());
  ASSERT_TRUE(e.to_rtr().ok());
  ASSERT_TRUE(e.to_rts().ok());
  ASSERT_TRUE(e.post(64 * kMtu).ok());
  std::set<std::uint32_t> low_halves;
  unsigned on_first_port = 0;
  for (const TxPacket& packet : e.drain()) {
    EXPECT_EQ(packet.profile, nullptr);
    EXPECT_EQ(packet.ev, kNoEv);
    EXPECT_GE(packet.entropy & 0xFFFF, 0xC000U) << "an ephemeral port";
    low_halves.insert(packet.entropy & 0xFFFF);
    on_first_port += packet.port == PortId{1} ? 1 : 0;
  }
  EXPECT_EQ(low_halves.size(), 64U) << "IPv4 carries only those";
  EXPECT_EQ(on_first_port, 32U);
}

TEST(QpWork, ReceivesArePostedBetweenInitAndRts) {
  Engine e;
  ASSERT_TRUE(e.create().ok());
  EXPECT_EQ(e.endpoint->post_receive(kQp, {}).code(), ErrorCode::kWrongState);
  ASSERT_TRUE(e.init().ok());
  EXPECT_TRUE(e.endpoint->post_receive(kQp, {}).ok());
  EXPECT_EQ(e.status().receives_outstanding, 1U);
}

TEST(QpWork, SendsIntoReceivesNeedAQueuePairThatAllowsThem) {
  Engine e;
  e.connect();
  EXPECT_EQ(e.endpoint->post_send(e.now, kQp, {.length = 8, .into_receive = true}).code(),
            ErrorCode::kUnsupported);
}

TEST(QpWork, APacketWhosePayloadIsGoneFailsItsQueuePair) {
  Engine e;
  e.connect();
  ASSERT_TRUE(e.post(64, 9).ok());
  const std::vector<TxPacket> sent = e.drain();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(e.endpoint->refuse_send(e.now, kQp, kSendPsn + 5).code(), ErrorCode::kNotFound);
  ASSERT_TRUE(e.endpoint->refuse_send(e.now, kQp, sent[0].packet.bth.psn).ok());
  const std::vector<Completion> done = e.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, CompletionStatus::kLocalProtection);
  EXPECT_EQ(e.status().state, QpState::kError);
}

TEST(QpQueries, TellWhereTheQueuePairStands) {
  Engine e;
  e.connect();
  ASSERT_TRUE(e.post(3 * kMtu).ok());
  e.drain();
  e.take(Engine::write(0));
  const QpStatus status = e.status();
  EXPECT_EQ(status.sends_outstanding, 1U);
  EXPECT_EQ(status.packets_in_flight, 3U);
  EXPECT_EQ(status.bytes_in_flight, status.peer_bytes_in_flight);
  EXPECT_EQ(status.next_psn, kSendPsn + 3);
  EXPECT_EQ(status.oldest_unacknowledged, kSendPsn);
  EXPECT_EQ(status.expected_psn, kReceivePsn + 1);
  EXPECT_EQ(e.endpoint->expected_psn(kQp).value(), kReceivePsn + 1);
  EXPECT_EQ(status.good_evs, 8);
  EXPECT_EQ(status.window_psns, kDefaultWindowUnits * kWindowUnitPsns);
}

TEST(QpQueries, PathsCanBeDeniedAskedAndCounted) {
  Engine e;
  e.connect();
  ASSERT_TRUE(e.endpoint->set_ev_denied(e.now, kQp, EvIndex{3}, true).ok());
  EXPECT_EQ(e.endpoint->query_ev(kQp, EvIndex{3}).value(), EvState::kDenied);
  EXPECT_EQ(e.endpoint->query_ev(kQp, EvIndex{2}).value(), EvState::kGood);
  EXPECT_EQ(e.endpoint->query_ev(kQp, EvIndex{8}).status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(e.endpoint->set_ev_denied(e.now, kQp, EvIndex{8}, true).code(), ErrorCode::kNotFound);
  ASSERT_TRUE(e.post(70 * kMtu).ok());
  e.drain();
  EXPECT_EQ(e.endpoint->query_ev_counters(kQp, EvIndex{3}).value().sent, 0U);
  EXPECT_GT(e.endpoint->query_ev_counters(kQp, EvIndex{2}).value().sent, 0U);
}

// --- Profiles that change under a queue pair in use ---

// The profile of the fixture with other EVs in these places.
EvProfile with_others(const Engine& e, const std::set<unsigned>& places) {
  std::vector<EvEntry> entries;
  for (std::uint16_t i = 0; i < e.profile.size(); ++i) {
    entries.push_back(e.profile.entry(EvIndex{i}));
    if (places.contains(i)) entries.back().entropy += 0x100;
  }
  return EvProfile::create(entries).value();
}

constexpr CcProfile kNoControl{.algorithm = CcAlgorithm::kNone};

TEST(FollowProfiles, WhatIsUnderWayOnAPathThatGoesIsSentAgainAndTheRestIsNot) {
  Engine e;
  e.connect();
  ASSERT_TRUE(e.post(64 * kMtu).ok());
  std::set<std::uint32_t> on_it;
  for (const TxPacket& packet : e.drain())
    if (packet.ev == EvIndex{3}) on_it.insert(packet.packet.bth.psn.value());
  ASSERT_FALSE(on_it.empty());
  const EvProfile changed = with_others(e, {3});
  ASSERT_TRUE(e.endpoint->follow_profiles(e.now, kQp, changed, kNoControl).ok());
  std::set<std::uint32_t> again;
  for (const TxPacket& packet : e.drain())
    again.insert(packet.packet.bth.psn.value());
  EXPECT_EQ(again, on_it);
  EXPECT_EQ(e.status().packets_in_flight, 64U);
  EXPECT_TRUE(e.events().empty());
}

TEST(FollowProfiles, WhatIsKnownOfAPathThatStaysIsKept) {
  Engine e;
  e.connect();
  ASSERT_TRUE(e.post(64 * kMtu).ok());
  wire::Packet always_skip{
      .bth = {.opcode = wire::Opcode::kSack, .destination = kQp, .psn = kSendPsn},
      .body = wire::Sack{.mark = wire::PathMark::kAlwaysSkip,
                         .source_context = static_cast<std::uint16_t>(kPeerQp),
                         .destination_context = static_cast<std::uint16_t>(kQp),
                         .cumulative = kSendPsn}};
  auto& sack = std::get<wire::Sack>(always_skip.body);
  std::vector<EvIndex> blamed;
  for (const TxPacket& packet : e.drain()) {
    if (blamed.size() == 2) break;
    sack.entropy = e.profile.entry(packet.ev).entropy;
    sack.offset_or_probe_id =
        static_cast<std::uint16_t>(packet.packet.bth.psn.distance_from(kSendPsn));
    e.take(always_skip);
    blamed.push_back(packet.ev);
  }
  for (const EvIndex ev : blamed)
    ASSERT_EQ(e.endpoint->query_ev(kQp, ev).value(), EvState::kAssumedBad);
  const std::uint32_t sent = e.endpoint->query_ev_counters(kQp, blamed[0]).value().sent;
  (void)e.events();
  const EvProfile changed = with_others(e, {static_cast<unsigned>(blamed[1])});
  ASSERT_TRUE(e.endpoint->follow_profiles(e.now, kQp, changed, kNoControl).ok());
  EXPECT_EQ(e.endpoint->query_ev(kQp, blamed[0]).value(), EvState::kAssumedBad);
  EXPECT_EQ(e.endpoint->query_ev_counters(kQp, blamed[0]).value().sent, sent);
  EXPECT_EQ(e.endpoint->query_ev(kQp, blamed[1]).value(), EvState::kGood) << "another path";
  EXPECT_EQ(e.endpoint->query_ev_counters(kQp, blamed[1]).value().sent, 0U);
  EXPECT_TRUE(e.events().empty());
}

TEST(FollowProfiles, AnotherControllerTakesOverWhatIsInFlight) {
  Engine e;
  const QpNumber other{0x112};
  const auto nscc = [](std::uint32_t window) {
    return CcProfile{.nscc = {.base_rtt_ns = 10'000, .max_cwnd = window}};
  };
  for (const QpNumber qp : {kQp, other}) {
    ASSERT_TRUE(e.create(qp).ok());
    ASSERT_TRUE(e.endpoint->init_qp(qp, {.ev_profile = &e.profile, .cc = nscc(64 * kMtu)}).ok());
    ASSERT_TRUE(e.to_rtr(qp).ok());
    ASSERT_TRUE(e.to_rts(qp).ok());
    ASSERT_TRUE(e.post(256 * kMtu, 1, qp).ok());
  }
  const std::size_t first = e.drain().size();
  ASSERT_GT(first, 8U);
  ASSERT_LT(first, 256U) << "both wait for the window";
  ASSERT_TRUE(e.endpoint->follow_profiles(e.now, kQp, e.profile, nscc(128 * kMtu)).ok());
  const QpStatus moved = e.status();
  EXPECT_EQ(moved.peer_bytes_in_flight, moved.bytes_in_flight) << "its own controller";
  EXPECT_EQ(e.status(other).peer_bytes_in_flight, e.status(other).bytes_in_flight);
  EXPECT_FALSE(e.drain().empty()) << "each has a window of its own now";
  EXPECT_GT(e.status().bytes_in_flight, moved.bytes_in_flight);
  ASSERT_TRUE(e.endpoint->follow_profiles(e.now, other, e.profile, nscc(128 * kMtu)).ok());
  EXPECT_EQ(e.status().peer_bytes_in_flight,
            e.status().bytes_in_flight + e.status(other).bytes_in_flight)
      << "together again";
}

TEST(FollowProfiles, RefusesWhatDoesNotFitAndChangesNothing) {
  Engine e;
  ASSERT_TRUE(e.create().ok());
  EXPECT_EQ(e.endpoint->follow_profiles(e.now, kQp, e.profile, kNoControl).code(),
            ErrorCode::kWrongState);
  ASSERT_TRUE(e.init().ok());
  const std::vector<EvEntry> fewer{e.profile.entry(EvIndex{0}), e.profile.entry(EvIndex{1})};
  const EvProfile small = EvProfile::create(fewer).value();
  EXPECT_EQ(e.endpoint->follow_profiles(e.now, kQp, small, kNoControl).code(),
            ErrorCode::kInvalidArgument);
  std::vector<EvEntry> elsewhere(e.profile.size(), {.entropy = 1, .port = PortId{9}});
  const EvProfile away = EvProfile::create(elsewhere).value();
  EXPECT_EQ(e.endpoint->follow_profiles(e.now, kQp, away, kNoControl).code(),
            ErrorCode::kInvalidArgument);
  const EvProfile changed = with_others(e, {1});
  EXPECT_TRUE(e.endpoint->follow_profiles(e.now, kQp, changed, kNoControl).ok());
  EXPECT_EQ(e.endpoint->follow_profiles(e.now, QpNumber{9}, e.profile, kNoControl).code(),
            ErrorCode::kNotFound);
}

}  // namespace
}  // namespace mrc::core
