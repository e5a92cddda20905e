#include "nic/plane_watch.h"

#include <gtest/gtest.h>

#include "nic/engine/port_gate.h"

namespace mrc::nic {
namespace {

constexpr TimeNs kStart = 5 * kSecondNs;
constexpr TimeNs kLater = kStart + PlaneWatch::kNewsAfterNs;
constexpr PortMask kUp = PortMask::first(4);

struct PlaneWatchTest : ::testing::Test {
  wire::IpAddress peer = wire::ipv4_address(0x0A000002);
  wire::IpAddress other = wire::ipv4_address(0x0A000003);
  PlaneWatch watch;
};

TEST_F(PlaneWatchTest, SilenceIsNewsAfterASecondAndOnce) {
  EXPECT_FALSE(watch.watches());
  watch.lost(peer, PortId{3}, kStart);
  EXPECT_TRUE(watch.watches());
  EXPECT_TRUE(watch.take(kLater - 1, kUp).empty());
  EXPECT_TRUE(watch.watches());
  const std::vector<PlaneNews> news = watch.take(kLater, kUp);
  ASSERT_EQ(news.size(), 1U);
  EXPECT_EQ(news.front().peer, peer);
  EXPECT_EQ(news.front().port, PortId{3});
  EXPECT_TRUE(news.front().lost);
  EXPECT_EQ(news.front().silent, PortMask::of(PortId{3}));
  EXPECT_FALSE(watch.watches());
  EXPECT_TRUE(watch.take(kLater + kSecondNs, kUp).empty());
}

TEST_F(PlaneWatchTest, AShortSilenceIsNoNews) {
  watch.lost(peer, PortId{1}, kStart);
  watch.back(peer, PortId{1});
  EXPECT_TRUE(watch.take(kLater, kUp).empty());
  EXPECT_FALSE(watch.watches());
}

TEST_F(PlaneWatchTest, QueuePairsOfOnePeerCountTogetherAndTheLastTellsTheReturn) {
  watch.lost(peer, PortId{2}, kStart);
  watch.lost(peer, PortId{2}, kStart + 1);
  watch.lost(other, PortId{2}, kLater);
  EXPECT_EQ(watch.take(kLater, kUp).size(), 1U);
  watch.back(peer, PortId{2});
  EXPECT_TRUE(watch.take(kLater, kUp).empty());
  watch.back(peer, PortId{2});
  const std::vector<PlaneNews> news = watch.take(kLater, kUp);
  ASSERT_EQ(news.size(), 1U);
  EXPECT_EQ(news.front().peer, peer);
  EXPECT_FALSE(news.front().lost);
  EXPECT_TRUE(news.front().silent.empty());
}

TEST_F(PlaneWatchTest, WhoeverGoesInSilenceBringsNoReturn) {
  watch.lost(peer, PortId{2}, kStart);
  EXPECT_EQ(watch.take(kLater, kUp).size(), 1U);
  watch.forget(peer, PortId{2});
  watch.forget(peer, PortId{2});
  EXPECT_TRUE(watch.take(kLater, kUp).empty());
}

TEST_F(PlaneWatchTest, NamesAllPlanesOfThePeerThatAreSilent) {
  watch.lost(peer, PortId{1}, kStart);
  watch.lost(other, PortId{4}, kStart);
  watch.lost(peer, PortId{3}, kLater);
  const std::vector<PlaneNews> news = watch.take(kLater, kUp);
  ASSERT_EQ(news.size(), 2U);
  EXPECT_EQ(news.front().silent, PortMask::of(PortId{1}).with(PortId{3}));
  EXPECT_EQ(news.back().silent, PortMask::of(PortId{4}));
}

TEST_F(PlaneWatchTest, APeerThatAnswersNowhereAndPortsOfOursThatAreDownAreNoNews) {
  for (const PortId port : kUp)
    watch.lost(peer, port, kStart);
  EXPECT_TRUE(watch.take(kLater, kUp).empty());
  EXPECT_TRUE(watch.watches());
  watch.back(peer, PortId{4});
  EXPECT_EQ(watch.take(kLater, kUp.without(PortId{2})).size(), 2U);
  EXPECT_EQ(watch.take(kLater, kUp).size(), 1U) << "port 2, once it is up";
}

TEST_F(PlaneWatchTest, ThePeersOfAStrangerDoNotFillTheMemory) {
  for (std::uint32_t i = 0; i < PlaneWatch::kMaxWatched + 10; ++i)
    watch.lost(wire::ipv4_address(i), PortId{1}, kStart);
  EXPECT_EQ(watch.take(kLater, kUp).size(), PlaneWatch::kMaxWatched);
}

TEST(PortGate, ClosesAfterTheGraceOfAPortTurnedOffAndOpensAtOnce) {
  PortGate gate;
  const PortMask all = PortMask::first(4);
  EXPECT_TRUE(gate.takes(PortId{2}, kStart));
  gate.set(all.without(PortId{2}), kStart);
  gate.set(all.without(PortId{2}), kStart + 1);  // another change of the node: the grace runs on
  EXPECT_TRUE(gate.takes(PortId{2}, kStart + PortGate::kGraceNs - 1));
  EXPECT_FALSE(gate.takes(PortId{2}, kStart + PortGate::kGraceNs));
  EXPECT_TRUE(gate.takes(PortId{1}, kStart + PortGate::kGraceNs));
  gate.set(all, kLater);
  EXPECT_TRUE(gate.takes(PortId{2}, kLater));
}

}  // namespace
}  // namespace mrc::nic
