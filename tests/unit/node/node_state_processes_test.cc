// Users of profiles and opinions of EVs, across processes and their deaths.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

#include "node/node_state.h"
#include "unit/node/node_state_support.h"

namespace mrc::node {
namespace {

using core::EvState;
using test::ChildProcess;
using test::open_state;
using test::put_profiles;
using test::Ready;
using test::TemporaryDirectory;

class NodeStateProcesses : public testing::Test {
 protected:
  NodeStateProcesses() {
    EXPECT_EQ(state_->update([](NodeSnapshot& s) {
      put_profiles(s, 1, 4);
      put_profiles(s, 2, 4);
      return 0;
    }),
              0);
  }
  int set_offline(std::uint64_t id) {
    return state_->update([id](NodeSnapshot& s) {
      s.ev_profiles[id].state = ProfileState::kOffline;
      return 0;
    });
  }
  ProfileEv ev(std::size_t index) { return state_->snapshot()->ev_profiles.at(1).evs[index]; }

  TemporaryDirectory directory_;
  std::unique_ptr<NodeState> state_ = open_state(directory_.path());
};

TEST_F(NodeStateProcesses, AProfileIsInUseUntilItsLastUserGoes) {
  EXPECT_FALSE(state_->in_use(ProfileKind::kEv, 1));
  ASSERT_EQ(state_->add_user(ProfileKind::kEv, 1), 0);
  ASSERT_EQ(state_->add_user(ProfileKind::kEv, 1), 0);
  EXPECT_TRUE(state_->in_use(ProfileKind::kEv, 1));
  EXPECT_FALSE(state_->in_use(ProfileKind::kCc, 1));
  EXPECT_FALSE(state_->in_use(ProfileKind::kEv, 2));
  state_->remove_user(ProfileKind::kEv, 1);
  EXPECT_TRUE(state_->in_use(ProfileKind::kEv, 1));
  state_->remove_user(ProfileKind::kEv, 1);
  EXPECT_FALSE(state_->in_use(ProfileKind::kEv, 1));
  state_->remove_user(ProfileKind::kEv, 1);
  EXPECT_EQ(test::entries_in(directory_ / "users"), 0u);
}

TEST_F(NodeStateProcesses, OnlyAProfileThatIsOnlineCanBeUsed) {
  EXPECT_EQ(state_->add_user(ProfileKind::kEv, 3), EINVAL);
  EXPECT_EQ(state_->add_user(ProfileKind::kCc, 3), EINVAL);
  ASSERT_EQ(set_offline(1), 0);
  EXPECT_EQ(state_->add_user(ProfileKind::kEv, 1), EINVAL);
  EXPECT_EQ(test::entries_in(directory_ / "users"), 0u);
}

TEST_F(NodeStateProcesses, AProfileWithUsersDoesNotLeaveOnline) {
  ASSERT_EQ(state_->add_user(ProfileKind::kEv, 1), 0);
  const std::uint64_t version = state_->snapshot()->version;
  EXPECT_EQ(set_offline(1), EBUSY);
  EXPECT_EQ(state_->update([](NodeSnapshot& s) { return s.ev_profiles.erase(1), 0; }), EBUSY);
  EXPECT_EQ(state_->snapshot()->version, version);
  EXPECT_EQ(set_offline(2), 0);
  state_->remove_user(ProfileKind::kEv, 1);
  EXPECT_EQ(set_offline(1), 0);
}

TEST_F(NodeStateProcesses, AKilledProcessUsesNothing) {
  const Ready ready;
  ChildProcess user([&] {
    const auto own = open_state(directory_.path());
    if (own->add_user(ProfileKind::kEv, 1) != 0 || own->add_user(ProfileKind::kCc, 1) != 0)
      return 1;
    return ready.tell_and_stay();
  });
  ASSERT_TRUE(ready.await());
  EXPECT_TRUE(state_->in_use(ProfileKind::kEv, 1));
  EXPECT_TRUE(state_->in_use(ProfileKind::kCc, 1));
  EXPECT_EQ(set_offline(1), EBUSY);
  user.kill_and_wait();
  EXPECT_FALSE(state_->in_use(ProfileKind::kEv, 1));
  EXPECT_FALSE(state_->in_use(ProfileKind::kCc, 1));
  EXPECT_EQ(set_offline(1), 0);
  EXPECT_EQ(test::entries_in(directory_ / "users"), 0u);
}

TEST_F(NodeStateProcesses, AChildThatOutlivesItsParentUsesNothing) {
  const Ready ready;
  const Ready child_ready;
  ChildProcess parent([&] {
    const auto own = open_state(directory_.path());
    if (own->add_user(ProfileKind::kEv, 1) != 0) return 1;
    own->publish_ev_state(1, own->snapshot()->ev_profiles.at(1).evs[0], EvState::kAssumedBad);
    const pid_t child = fork();
    if (child == 0) return child_ready.tell_and_stay();
    if (!child_ready.await()) return 1;
    std::ofstream(directory_ / "child") << child;
    return ready.tell_and_stay();
  });
  ASSERT_TRUE(ready.await());
  pid_t child = 0;
  std::ifstream(directory_ / "child") >> child;
  ASSERT_GT(child, 0);
  EXPECT_TRUE(state_->in_use(ProfileKind::kEv, 1));
  parent.kill_and_wait();
  EXPECT_EQ(kill(child, 0), 0);
  EXPECT_FALSE(state_->in_use(ProfileKind::kEv, 1));
  EXPECT_EQ(state_->ev_state(1, ev(0)), EvState::kGood);
  kill(child, SIGKILL);
}

TEST_F(NodeStateProcesses, AChildThatEndsTakesNothingFromItsParent) {
  ASSERT_EQ(state_->add_user(ProfileKind::kEv, 1), 0);
  state_->publish_ev_state(1, ev(0), EvState::kAssumedBad);
  ChildProcess child([&] {
    state_.reset();
    return 0;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_TRUE(state_->in_use(ProfileKind::kEv, 1));
  EXPECT_EQ(state_->ev_state(1, ev(0)), EvState::kAssumedBad);
}

// Users come while the profile goes: whatever the order, nobody uses a profile that is offline.
TEST_F(NodeStateProcesses, NobodySlipsInWhileAProfileGoesOffline) {
  unsigned busy = 0;
  unsigned gone = 0;
  for (unsigned round = 0; round < 64; ++round) {
    ASSERT_EQ(state_->update([](NodeSnapshot& s) {
      s.ev_profiles[1].state = ProfileState::kOnline;
      return 0;
    }),
              0);
    const Ready ready;
    const Ready go;
    ChildProcess user([&] {
      const auto own = open_state(directory_.path());
      if (!ready.tell() || !go.await()) return 3;
      usleep(round % 8 * 100);
      if (own->add_user(ProfileKind::kEv, 1) != 0) return 0;
      for (unsigned look = 0; look < 100; ++look) {
        if (own->snapshot()->ev_profiles.at(1).state != ProfileState::kOnline) return 2;
        usleep(50);
      }
      return 1;
    });
    ASSERT_TRUE(ready.await() && go.tell());
    usleep(round / 8 * 150);
    const int result = set_offline(1);
    EXPECT_TRUE(result == 0 || result == EBUSY) << result;
    result == 0 ? ++gone : ++busy;
    EXPECT_EQ(user.wait(), result == 0 ? 0 : 1) << "round " << round;
  }
  RecordProperty("busy", static_cast<int>(busy));
  RecordProperty("gone", static_cast<int>(gone));
}

TEST_F(NodeStateProcesses, TheWorstOpinionOfAllProcessesCounts) {
  const Ready ready;
  EXPECT_EQ(state_->ev_state(1, ev(0)), EvState::kGood);
  state_->publish_ev_state(1, ev(0), EvState::kSkip);
  state_->publish_ev_state(1, ev(1), EvState::kAssumedBad);
  ChildProcess other([&] {
    const auto own = open_state(directory_.path());
    own->publish_ev_state(1, ev(0), EvState::kAssumedBad);
    own->publish_ev_state(1, ev(1), EvState::kSkip);
    own->publish_ev_state(1, ev(2), EvState::kAssumedBad);
    own->publish_ev_state(2, ev(3), EvState::kAssumedBad);
    return ready.tell_and_stay();
  });
  ASSERT_TRUE(ready.await());
  EXPECT_EQ(state_->ev_state(1, ev(0)), EvState::kAssumedBad);
  EXPECT_EQ(state_->ev_state(1, ev(1)), EvState::kAssumedBad);
  EXPECT_EQ(state_->ev_state(1, ev(2)), EvState::kAssumedBad);
  EXPECT_EQ(state_->ev_state(1, ev(3)), EvState::kGood);
  EXPECT_EQ(state_->ev_opinions(1).size(), 3u);
  other.kill_and_wait();
  EXPECT_EQ(state_->ev_state(1, ev(0)), EvState::kSkip);
  EXPECT_EQ(state_->ev_state(1, ev(2)), EvState::kGood);
  state_->publish_ev_state(1, ev(0), EvState::kGood);
  EXPECT_EQ(state_->ev_state(1, ev(0)), EvState::kGood);
  EXPECT_EQ(state_->ev_state(1, ev(1)), EvState::kAssumedBad);
}

TEST_F(NodeStateProcesses, AnEvThatComesBackBeginsAnew) {
  const ProfileEv first = ev(0);
  ProfileEv other = first;
  other.value.bytes[0] ^= 0x80;
  const auto replace_first = [&](const ProfileEv& by) {
    EXPECT_EQ(state_->update([&](NodeSnapshot& s) {
      s.ev_profiles[1].evs[0] = by;
      return 0;
    }),
              0);
    state_->forget_replaced_evs(*state_->snapshot());
  };
  state_->publish_ev_state(1, first, EvState::kAssumedBad);
  state_->publish_ev_state(1, ev(1), EvState::kAssumedBad);
  replace_first(other);
  EXPECT_EQ(state_->ev_opinions(1).size(), 1u) << "of the one that was not replaced";
  state_->publish_ev_state(1, first, EvState::kAssumedBad);  // news that is late
  EXPECT_EQ(state_->ev_opinions(1).size(), 1u);
  replace_first(first);
  EXPECT_EQ(state_->ev_state(1, ev(0)), EvState::kGood);
  EXPECT_EQ(state_->ev_state(1, ev(1)), EvState::kAssumedBad);
}

TEST_F(NodeStateProcesses, WhoUsesAProfileNoMoreHasNoOpinionOfIt) {
  ASSERT_EQ(state_->add_user(ProfileKind::kEv, 1), 0);
  ASSERT_EQ(state_->add_user(ProfileKind::kEv, 1), 0);
  state_->publish_ev_state(1, ev(0), EvState::kAssumedBad);
  state_->publish_ev_state(2, state_->snapshot()->ev_profiles.at(2).evs[0], EvState::kAssumedBad);
  state_->remove_user(ProfileKind::kEv, 1);
  EXPECT_EQ(state_->ev_opinions(1).size(), 1u) << "there is another";
  state_->remove_user(ProfileKind::kEv, 1);
  EXPECT_EQ(state_->ev_opinions(1).size(), 0u);
  EXPECT_EQ(state_->ev_opinions(2).size(), 1u);
}

TEST_F(NodeStateProcesses, OpinionsThatChangeAllTheTimeTakeNoMoreRoom) {
  for (unsigned i = 0; i < 10'000; ++i)
    state_->publish_ev_state(1, ev(i % 4), i % 3 == 0 ? EvState::kAssumedBad : EvState::kGood);
  for (const auto& entry : std::filesystem::directory_iterator(directory_ / "users"))
    EXPECT_LE(entry.file_size(), 4u * 64);
}

TEST_F(NodeStateProcesses, ForeignThingsAmongTheUsersDoNoHarm) {
  const std::string users = directory_ / "users";
  ASSERT_EQ(mkfifo((users + "/ev-0000000000000001-fifo").c_str(), 0600), 0);
  ASSERT_EQ(symlink("/dev/zero", (users + "/opinions-link").c_str()), 0);
  std::filesystem::create_directory(users + "/ev-0000000000000001-directory");
  std::ofstream(users + "/opinions-dead") << std::string(640, 'x');
  std::ofstream(users + "/ev-0000000000000001-dead") << "x";
  std::ofstream(users + "/unrelated") << "x";
  const Ready ready;
  ChildProcess liar([&] {
    const std::string path = users + "/opinions-liar";
    std::ofstream(path) << std::string(6'400, 'x');
    const int fd = open(path.c_str(), O_RDWR);
    if (flock(fd, LOCK_EX) != 0) return 1;
    return ready.tell_and_stay();
  });
  ASSERT_TRUE(ready.await());
  EXPECT_FALSE(state_->in_use(ProfileKind::kEv, 1));
  EXPECT_EQ(state_->ev_state(1, ev(0)), EvState::kGood);
  EXPECT_FALSE(std::filesystem::exists(users + "/opinions-dead"));
  EXPECT_FALSE(std::filesystem::exists(users + "/ev-0000000000000001-dead"));
  EXPECT_TRUE(std::filesystem::exists(users + "/unrelated"));
}

TEST_F(NodeStateProcesses, FollowersAreThoseThatLive) {
  EXPECT_TRUE(state_->followers().empty());
  state_->note_applied(1, 0);
  state_->note_applied(7, 2);
  {
    const Ready ready;
    ChildProcess other([&] {
      const auto theirs = open_state(directory_.path());
      theirs->note_applied(3, 0);
      return ready.tell_and_stay();
    });
    ASSERT_TRUE(ready.await());
    auto all = state_->followers();
    ASSERT_EQ(all.size(), 2u);
    if (all[0].version == 7) std::swap(all[0], all[1]);
    EXPECT_EQ(all[0].version, 3u);
    EXPECT_EQ(all[1].version, 7u);
    EXPECT_EQ(all[1].stranded, 2u);
    EXPECT_EQ(all[1].process, static_cast<std::uint64_t>(getpid()));
    EXPECT_NE(all[0].process, all[1].process);
  }
  EXPECT_EQ(state_->followers().size(), 1u);
}

TEST_F(NodeStateProcesses, FilesOfFollowersThatDiedGoWithTheNextOne) {
  const std::string left = (directory_ / "users") + "/follows-dead";
  std::ofstream(left) << "x";
  state_->note_applied(1, 0);
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST_F(NodeStateProcesses, AFollowerThatSaysNothingWholeFollowsNothing) {
  const Ready ready;
  ChildProcess liar([&] {
    const std::string path = (directory_ / "users") + "/follows-liar";
    std::ofstream(path) << std::string(32, 'x');
    const int fd = open(path.c_str(), O_RDWR);
    if (flock(fd, LOCK_EX) != 0) return 1;
    return ready.tell_and_stay();
  });
  ASSERT_TRUE(ready.await());
  const auto all = state_->followers();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].version, 0u);
}

}  // namespace
}  // namespace mrc::node
