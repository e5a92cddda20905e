// Events from any process to any listener.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "nic/node_state.h"
#include "unit/nic/node_state_support.h"

namespace mrc::nic {
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
  NodeEvEvent event(std::uint32_t drops) const {
    return {.profile_id = 1,
            .ev = state_->snapshot()->ev_profiles.at(1).evs[2],
            .drop_count = drops,
            .state = EvState::kAssumedBad};
  }
  void set_mask(std::uint32_t mask) {
    ASSERT_EQ(state_->update([mask](NodeSnapshot& s) {
      s.ev_profiles[1].event_mask = mask;
      return 0;
    }),
              0);
  }

  TemporaryDirectory directory_;
  // Longer than a socket address can be.
  std::string device_ = directory_ / std::string(120, 'd');
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
      EXPECT_EQ(got.drop_count, i);
      EXPECT_EQ(got.state, EvState::kAssumedBad);
    }
    NodeEvEvent none;
    EXPECT_FALSE(listener->next(none));
    EXPECT_EQ(listener->missed(), 0u);
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

TEST_F(NodeStateEvents, ASlowListenerMissesSomeAndKnowsHowMany) {
  const auto listener = state_->listen();
  constexpr std::uint32_t kSent = 5'000;
  for (std::uint32_t i = 0; i < kSent; ++i)
    state_->send_event(event(i));
  std::uint32_t got = 0;
  NodeEvEvent one;
  while (listener->next(one))
    ++got;
  EXPECT_LT(got, kSent);
  EXPECT_GT(got, 0u);
  state_->send_event(event(0));
  EXPECT_TRUE(listener->next(one));
  EXPECT_EQ(listener->missed(), kSent - got);
}

TEST_F(NodeStateEvents, TheSocketOfADeadListenerIsRemovedByTheNextSender) {
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

TEST_F(NodeStateEvents, NoiseInTheSocketIsPassedOver) {
  const auto listener = state_->listen();
  std::string socket_path;
  for (const auto& entry : std::filesystem::directory_iterator(device_ + "/events"))
    socket_path = entry.path();
  const std::string near = directory_ / "s";
  std::filesystem::create_symlink(socket_path, near);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(static_cast<char*>(address.sun_path), near.c_str(), near.size() + 1);
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  for (std::size_t length = 0; length < 200; ++length) {
    const std::string noise(length, 'x');
    EXPECT_EQ(sendto(fd, noise.data(), length, 0, reinterpret_cast<const sockaddr*>(&address),
                     sizeof address),
              static_cast<ssize_t>(length));
    NodeEvEvent got;
    EXPECT_FALSE(listener->next(got)) << length;
  }
  close(fd);
  state_->send_event(event(9));
  NodeEvEvent got;
  ASSERT_TRUE(listener->next(got));
  EXPECT_EQ(got.drop_count, 9u);
}

}  // namespace
}  // namespace mrc::nic
