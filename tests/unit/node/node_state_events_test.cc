// Events from any process to any listener.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "node/node_state.h"
#include "unit/node/node_state_support.h"

namespace mrc::node {
namespace {

using core::EvState;
using test::ChildProcess;
using test::open_state;
using test::put_profiles;
using test::TemporaryDirectory;

constexpr int kPatienceMs = 20'000;

class NodeStateEvents : public testing::Test {
 protected:
  NodeStateEvents() {
    EXPECT_EQ(state_->update([](NodeSnapshot& s) { return put_profiles(s, 1, 4), 0; }), 0);
  }
  // Its last bytes tell one from another.
  NodeEvEvent event(std::uint32_t number) const {
    NodeEvEvent made{.profile_id = 1,
                     .ev = state_->snapshot()->ev_profiles.at(1).evs[2],
                     .state = EvState::kAssumedBad};
    made.ev.compact.bytes[30] = static_cast<std::uint8_t>(number >> 8);
    made.ev.compact.bytes[31] = static_cast<std::uint8_t>(number);
    return made;
  }
  void set_mask(std::uint32_t mask) {
    ASSERT_EQ(state_->update([mask](NodeSnapshot& s) {
      s.ev_profiles[1].event_mask = mask;
      return 0;
    }),
              0);
  }

  TemporaryDirectory directory_;
  std::string device_ = directory_ / "mrc0";
  std::unique_ptr<NodeState> state_ = open_state(device_);
};

TEST_F(NodeStateEvents, ReachEveryListenerOfTheNodeInOrder) {
  const auto first = state_->listen();
  const auto second = open_state(device_)->listen();
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  ChildProcess sender([&] {
    const auto own = open_state(device_);
    for (std::uint32_t i = 0; i < 5; ++i)
      own->send_event(event(i));
    return 0;
  });
  EXPECT_EQ(sender.wait(), 0);
  for (NodeState::Listener* listener : {first.get(), second.get()}) {
    for (std::uint32_t i = 0; i < 5; ++i) {
      ASSERT_TRUE(test::readable(listener->descriptor(), kPatienceMs));
      NodeEvEvent got;
      ASSERT_TRUE(listener->next(got));
      EXPECT_EQ(got.profile_id, 1u);
      EXPECT_EQ(got.ev, event(i).ev);
      EXPECT_EQ(got.lost_before, 0u);
      EXPECT_EQ(got.state, EvState::kAssumedBad);
    }
    NodeEvEvent none;
    EXPECT_FALSE(listener->next(none));
  }
}

TEST_F(NodeStateEvents, OnlyWhatTheMaskSelectsIsSent) {
  const auto listener = state_->listen();
  const auto sent = [&](EvState state) {
    NodeEvEvent one = event(0);
    one.state = state;
    state_->send_event(one);
    NodeEvEvent got;
    return listener->next(got);
  };
  set_mask(1);
  EXPECT_TRUE(sent(EvState::kGood));
  EXPECT_FALSE(sent(EvState::kAssumedBad));
  set_mask(2);
  EXPECT_FALSE(sent(EvState::kGood));
  EXPECT_TRUE(sent(EvState::kAssumedBad));
  set_mask(0);
  EXPECT_FALSE(sent(EvState::kAssumedBad));
  set_mask(3);
  EXPECT_FALSE(sent(EvState::kSkip));
  NodeEvEvent unknown = event(0);
  unknown.profile_id = 99;
  state_->send_event(unknown);
  EXPECT_FALSE(listener->next(unknown));
}

TEST_F(NodeStateEvents, AListenerHoldsAsManyAsItAskedForAndKnowsWhatItLost) {
  for (const std::uint32_t capacity : {1U, 40U, 128U, 5'000U}) {
    const auto listener = state_->listen(capacity);
    ASSERT_NE(listener, nullptr);
    const std::uint32_t sent = 2 * capacity + 1'000;
    for (std::uint32_t i = 0; i < sent; ++i)
      state_->send_event(event(i));
    std::uint32_t got = 0;
    NodeEvEvent one;
    for (; listener->next(one); ++got) {
      EXPECT_EQ(one.lost_before, 0U);
      EXPECT_EQ(one.ev, event(got).ev);
    }
    EXPECT_GE(got, capacity);
    EXPECT_LT(got, sent) << "a pipe of a few pages";
    state_->send_event(event(0));
    ASSERT_TRUE(listener->next(one));
    EXPECT_EQ(one.lost_before, sent - got);
    state_->send_event(event(1));
    ASSERT_TRUE(listener->next(one));
    EXPECT_EQ(one.lost_before, 0U) << "each loss is told once";
  }
}

TEST_F(NodeStateEvents, AHundredListenersAllHear) {
  std::vector<std::unique_ptr<NodeState::Listener>> listeners;
  for (int i = 0; i < 100; ++i) {
    listeners.push_back(state_->listen(1));
    ASSERT_NE(listeners.back(), nullptr);
  }
  state_->send_event(event(7));
  NodeEvEvent one;
  for (const auto& listener : listeners)
    EXPECT_TRUE(listener->next(one));
}

TEST_F(NodeStateEvents, WhatASenderLostBeforeItsFirstEventCountsToo) {
  const auto listener = state_->listen(1);
  std::uint32_t held = 0;
  while (held < 100'000) {
    state_->send_event(event(held++));
    int bytes = 0;
    ASSERT_EQ(ioctl(listener->descriptor(), FIONREAD, &bytes), 0);
    if (bytes > sysconf(_SC_PAGESIZE) - 128) break;
  }
  const auto other = open_state(device_);
  for (int i = 0; i < 3; ++i)
    other->send_event(event(7));
  NodeEvEvent one;
  while (listener->next(one))
    EXPECT_EQ(one.lost_before, 0U);
  other->send_event(event(8));
  ASSERT_TRUE(listener->next(one));
  EXPECT_EQ(one.lost_before, 3U);
}

TEST_F(NodeStateEvents, MoreThanAPipeCanHoldIsRefused) {
  EXPECT_EQ(state_->listen(std::size_t{1} << 40), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(test::entries_in(device_ + "/events"), 0U);
}

TEST_F(NodeStateEvents, ThePipeOfADeadListenerIsRemovedByTheNextSender) {
  ChildProcess listener([&] {
    const auto own = open_state(device_);
    const auto ear = own->listen();
    raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(listener.wait(), -1);
  EXPECT_EQ(test::entries_in(device_ + "/events"), 1u);
  state_->send_event(event(0));
  EXPECT_EQ(test::entries_in(device_ + "/events"), 0u);
}

TEST_F(NodeStateEvents, AListenerThatGoesLeavesNothing) {
  auto listener = state_->listen();
  EXPECT_EQ(test::entries_in(device_ + "/events"), 1u);
  listener.reset();
  EXPECT_EQ(test::entries_in(device_ + "/events"), 0u);
}

TEST_F(NodeStateEvents, AfterNoiseTheNextEventIsReadAllTheSame) {
  const auto listener = state_->listen();
  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(device_ + "/events"))
    path = entry.path();
  const int fd = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  for (std::uint32_t length = 1; length < 300; length += 7) {
    const std::string noise(length, 'M');
    ASSERT_EQ(write(fd, noise.data(), length), static_cast<ssize_t>(length));
    NodeEvEvent got;
    EXPECT_FALSE(listener->next(got));
    state_->send_event(event(length));
    ASSERT_TRUE(listener->next(got)) << length;
    EXPECT_EQ(got.ev, event(length).ev);
  }
  close(fd);
}

TEST_F(NodeStateEvents, HundredsInARowFit) {
  const auto listener = state_->listen();
  for (std::uint32_t i = 0; i < 500; ++i)
    state_->send_event(event(i));
  NodeEvEvent got;
  for (std::uint32_t i = 0; i < 500; ++i) {
    ASSERT_TRUE(listener->next(got));
    ASSERT_EQ(got.ev, event(i).ev);
  }
}

}  // namespace
}  // namespace mrc::node
