// Other users of the machine: whose directories are believed, and what their files among the users
// of profiles can do.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <vector>

#include "node/node_state.h"
#include "node/opinion_record.h"
#include "unit/node/node_state_support.h"

namespace mrc::node {
namespace {

using test::become;
using test::ChildProcess;
using test::open_state;
using test::put_profiles;
using test::Ready;
using test::TemporaryDirectory;

constexpr uid_t kUser = 12'345;
constexpr uid_t kStranger = 12'346;

class NodeStateOwners : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    ASSERT_EQ(chmod(directory_.path().c_str(), 01777), 0);
  }
  // What a process of `user` is told about a directory; empty when it may use it.
  std::string refusal(uid_t user, const std::string& path) const {
    const std::string answer = directory_ / "answer";
    ChildProcess child([&] {
      if (!become(user)) return 1;
      std::string error;
      errno = 0;
      const auto state = NodeState::open(path, error);
      if (state == nullptr && errno != EACCES) return 2;
      std::ofstream(answer) << (state ? "" : error);
      return 0;
    });
    EXPECT_EQ(child.wait(), 0);
    std::string line;
    std::ifstream file(answer);
    std::getline(file, line);
    unlink(answer.c_str());
    return line;
  }
  void make(const std::string& path, uid_t owner, mode_t mode) const {
    ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
    ASSERT_EQ(chown(path.c_str(), owner, owner), 0);
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
  }

  TemporaryDirectory directory_;
};

TEST_F(NodeStateOwners, AStateOfAnotherUserIsRefusedWithAWayOut) {
  make(directory_ / "mrc", kStranger, 0755);
  make(directory_ / "mrc/mrc0", kStranger, 0777);
  const std::string said = refusal(kUser, directory_ / "mrc/mrc0");
  EXPECT_NE(said.find("mrc/mrc0: belongs to user 12346"), std::string::npos) << said;
  EXPECT_NE(said.find("MRC_STATE_DIR"), std::string::npos) << said;
  EXPECT_EQ(refusal(kStranger, directory_ / "mrc"), "");
}

TEST_F(NodeStateOwners, AStateThatAnotherUserCouldReplaceIsRefused) {
  make(directory_ / "theirs", kStranger, 0777);
  make(directory_ / "theirs/mrc0", kUser, 0755);
  const std::string said = refusal(kUser, directory_ / "theirs/mrc0");
  EXPECT_NE(said.find("theirs: belongs to user 12346"), std::string::npos) << said;
  make(directory_ / "open", kUser, 0777);
  make(directory_ / "open/mrc0", kUser, 0755);
  EXPECT_NE(refusal(kUser, directory_ / "open/mrc0").find("every user"), std::string::npos);
  make(directory_ / "writable", kUser, 0777);
  EXPECT_NE(refusal(kUser, directory_ / "writable").find("every user"), std::string::npos);
  // By turning a link of theirs.
  make(directory_ / "ours", kUser, 0755);
  ASSERT_EQ(symlink("ours", (directory_ / "link").c_str()), 0);
  ASSERT_EQ(lchown((directory_ / "link").c_str(), kStranger, kStranger), 0);
  EXPECT_NE(refusal(kUser, directory_ / "link/mrc0"), "");
}

TEST_F(NodeStateOwners, OurOwnRootsAndWhatRootGaveAwayAreBelieved) {
  make(directory_ / "ours", kUser, 0755);
  EXPECT_EQ(refusal(kUser, directory_ / "ours/mrc0"), "");
  EXPECT_EQ(refusal(kUser, directory_ / "ours/mrc0/"), "");
  make(directory_ / "run", 0, 0755);
  make(directory_ / "run/mrc0", 0, 0755);
  EXPECT_EQ(refusal(kUser, directory_ / "run/mrc0"), "");
  make(directory_ / "run/mrc1", kStranger, 0755);  // a service with a user of its own
  EXPECT_EQ(refusal(kUser, directory_ / "run/mrc1"), "");
}

// --- Among the users of profiles

class NodeStateStrangers : public NodeStateOwners {
 protected:
  void SetUp() override {
    NodeStateOwners::SetUp();
    if (IsSkipped()) return;
    make(where_, 0, 0755);
    state_ = open_state(where_);
    const auto profiles = [](NodeSnapshot& s) {
      put_profiles(s, 1, 4);
      put_profiles(s, 2, 4);
      return 0;
    };
    ASSERT_EQ(state_->update(profiles), 0);
  }
  // A stranger's files, locked as if their process were one of ours.
  int lock_and_stay(const std::string& name, const Ready& ready) const {
    if (!become(kStranger)) return 1;
    const std::string path = where_ + "/users/" + name;
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || flock(fd, LOCK_EX) != 0) return 2;
    return ready.tell_and_stay();
  }

  const std::string where_ = directory_ / "mrc0";
  std::unique_ptr<NodeState> state_;
};

TEST_F(NodeStateStrangers, ThatAProfileIsAboutToGoIsForControllersToSay) {
  const Ready ready;
  ChildProcess stranger([&] { return lock_and_stay("leaving-ev-0000000000000001-1", ready); });
  ASSERT_TRUE(ready.await());
  ChildProcess user([&] {
    if (!become(kUser)) return 1;
    alarm(10);  // the wait for a controller is longer
    return open_state(where_)->add_user(ProfileKind::kEv, 1) == 0 ? 0 : 2;
  });
  EXPECT_EQ(user.wait(), 0);
}

TEST_F(NodeStateStrangers, JunkHidesNoUser) {
  const auto litter = [&](const std::string& prefix) {
    for (unsigned i = 0; i < 8'192; ++i) {
      const std::string path = where_ + "/users/" + prefix + std::to_string(i);
      const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
      if (fd < 0 || close(fd) != 0) return 1;
    }
    return 0;
  };
  const auto litter_as_stranger = [&](const std::string& name) {
    ChildProcess stranger([&] { return become(kStranger) ? litter(name) : 1; });
    return stranger.wait();
  };
  ASSERT_EQ(litter_as_stranger("before-"), 0);
  ASSERT_EQ(litter_as_stranger("ev-0000000000000001-"), 0);
  const Ready ready;
  ChildProcess user([&] {
    if (!become(kUser)) return 1;
    const auto own = open_state(where_);
    for (const std::uint64_t id : {1, 2}) {
      if (own->add_user(ProfileKind::kEv, id) != 0) return 2;
      if (own->add_user(ProfileKind::kCc, id) != 0) return 3;
    }
    return ready.tell_and_stay();
  });
  ASSERT_TRUE(ready.await());
  ASSERT_EQ(litter_as_stranger("behind-"), 0);
  for (const std::uint64_t id : {1, 2}) {
    EXPECT_TRUE(state_->in_use(ProfileKind::kEv, id)) << id;
    EXPECT_TRUE(state_->in_use(ProfileKind::kCc, id)) << id;
  }
}

TEST_F(NodeStateStrangers, WhatIsNoFileOfAProcessUsesNothing) {
  const std::string prefix = where_ + "/users/ev-0000000000000001-";
  ASSERT_EQ(symlink("/dev/zero", (prefix + "link").c_str()), 0);
  ChildProcess stranger([&] {
    if (!become(kStranger)) return 1;
    return open((prefix + "closed").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600) < 0 ? 2 : 0;
  });
  ASSERT_EQ(stranger.wait(), 0);
  ChildProcess user([&] {
    if (!become(kUser)) return 1;
    return open_state(where_)->in_use(ProfileKind::kEv, 1) ? 2 : 0;
  });
  EXPECT_EQ(user.wait(), 0);
}

// Two files with as many records as a process may have, all about EVs that the profile has not.
TEST_F(NodeStateStrangers, OpinionsOfWhatNobodyHasHideNone) {
  const Ready ready;
  ChildProcess stranger([&] {
    if (!become(kStranger)) return 1;
    for (const std::uint8_t file : {1, 2}) {
      const std::string path = where_ + "/users/opinions-" + std::to_string(file);
      const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
      if (fd < 0 || flock(fd, LOCK_EX) != 0) return 2;
      std::vector<std::byte> bytes;
      for (unsigned i = 0; i < 16'384; ++i) {
        OpinionRecord record{.profile_id = 1, .opinion = {.state = core::EvState::kAssumedBad}};
        record.opinion.value.bytes = {0xEE, file, static_cast<std::uint8_t>(i >> 8),
                                      static_cast<std::uint8_t>(i)};
        const OpinionBytes one = encode_opinion(record);
        bytes.insert(bytes.end(), one.begin(), one.end());
      }
      if (write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) return 3;
    }
    return ready.tell_and_stay();
  });
  ASSERT_TRUE(ready.await());
  const ProfileEv ev = state_->snapshot()->ev_profiles.at(1).evs[0];
  state_->publish_ev_state(1, ev, core::EvState::kSkip);
  EXPECT_EQ(state_->ev_state(1, ev), core::EvState::kSkip);
  EXPECT_EQ(state_->ev_opinions(1).size(), 1U);
}

}  // namespace
}  // namespace mrc::node
