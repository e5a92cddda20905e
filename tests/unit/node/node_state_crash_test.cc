// Writers in several processes, writers killed at any moment, and users without the right to write.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/prng.h"
#include "node/node_state.h"
#include "unit/node/node_state_support.h"

namespace mrc::node {
namespace {

using test::become;
using test::ChildProcess;
using test::open_state;
using test::put_profiles;
using test::TemporaryDirectory;

constexpr uid_t kOtherUser = 12'345;

// Profile `id` counts in its number of EVs; port mask and format follow from the counts of all, so
// that a mixture of two states shows.
int count_up(NodeSnapshot& state, std::uint64_t id) {
  const auto known = state.ev_profiles.find(id);
  const unsigned count =
      known == state.ev_profiles.end() ? 1 : static_cast<unsigned>(known->second.evs.size()) + 1;
  put_profiles(state, id, count);
  return 0;
}

TEST(NodeStateCrash, WritersInSeveralProcessesLoseNothing) {
  const TemporaryDirectory directory;
  constexpr unsigned kWriters = 4;
  constexpr unsigned kChanges = 40;
  {
    std::vector<std::unique_ptr<ChildProcess>> writers;
    for (unsigned writer = 0; writer < kWriters; ++writer) {
      writers.push_back(std::make_unique<ChildProcess>([&] {
        const auto state = open_state(directory.path());
        for (unsigned i = 0; i < kChanges; ++i) {
          if (state->update([&](NodeSnapshot& s) { return count_up(s, writer % 2); }) != 0)
            return 1;
        }
        return 0;
      }));
    }
    for (const auto& writer : writers)
      EXPECT_EQ(writer->wait(), 0);
  }
  const auto snapshot = open_state(directory.path())->snapshot();
  EXPECT_EQ(snapshot->version, kWriters * kChanges);
  for (std::uint64_t id = 0; id < 2; ++id)
    EXPECT_EQ(snapshot->ev_profiles.at(id).evs.size(), kChanges * kWriters / 2);
}

TEST(NodeStateCrash, AWriterKilledAtAnyMomentLeavesAWholeState) {
  const TemporaryDirectory directory;
  Prng random(static_cast<std::uint64_t>(getpid()));
  const auto reader = open_state(directory.path());
  testing::internal::CaptureStderr();
  std::uint64_t last = 0;
  std::uint64_t written = 0;
  // On a busy machine a writer may be killed before it gets anywhere.
  for (unsigned round = 0; round < 60 || (written == 0 && round < 1'000); ++round) {
    ChildProcess writer([&] {
      const auto state = open_state(directory.path());
      while (true) {
        if (state->update([&](NodeSnapshot& s) {
              if (s.version % 64 == 0) s.ev_profiles.clear();
              return count_up(s, s.version % 3);
            }) != 0)
          return 1;
      }
    });
    usleep(static_cast<useconds_t>(random.next64() % 30'000));
    writer.kill_and_wait();
    const std::uint64_t version = reader->snapshot()->version;
    EXPECT_GE(version, last);
    written += version - last;
    ASSERT_EQ(reader->update([&](NodeSnapshot& s) { return count_up(s, 9), 0; }), 0);
    EXPECT_EQ(reader->snapshot()->version, version + 1);
    last = version + 1;
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_GT(written, 0u);
  EXPECT_LE(test::entries_in(directory.path()), 4u);
}

TEST(NodeStateCrash, AForkedChildDoesNotKeepTheWritersLock) {
  const TemporaryDirectory directory;
  const auto state = open_state(directory.path());
  pid_t child = -1;
  ASSERT_EQ(state->update([&](NodeSnapshot& s) {
    child = fork();
    if (child == 0) {
      while (true)
        pause();
    }
    return count_up(s, 1);
  }),
            0);
  EXPECT_EQ(state->update([](NodeSnapshot& s) { return count_up(s, 1); }), 0);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(NodeStateCrash, AnotherUserMayReadAndUseButNotChange) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const TemporaryDirectory directory;
  ASSERT_EQ(chmod(directory.path().c_str(), 0755), 0);
  const auto state = open_state(directory.path());
  ASSERT_EQ(state->update([](NodeSnapshot& s) { return put_profiles(s, 1, 4), 0; }), 0);
  const auto listener = state->listen();
  ChildProcess other([&] {
    if (!become(kOtherUser)) return 1;
    const auto own = open_state(directory.path());
    if (own->snapshot()->ev_profiles.size() != 1) return 2;
    if (own->may_update() != EPERM) return 3;
    if (own->update([](NodeSnapshot& s) { return count_up(s, 1); }) != EPERM) return 4;
    if (own->add_user(ProfileKind::kEv, 1) != 0) return 5;
    const ProfileEv ev = own->snapshot()->ev_profiles.at(1).evs[0];
    own->publish_ev_state(1, ev, core::EvState::kAssumedBad);
    own->send_event({.profile_id = 1, .ev = ev, .state = core::EvState::kAssumedBad});
    if (own->listen() != nullptr || errno != EPERM) return 6;
    if (state->ev_state(1, ev) != core::EvState::kAssumedBad) return 7;
    raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(other.wait(), -1);
  EXPECT_EQ(state->snapshot()->version, 1u);
  EXPECT_FALSE(state->in_use(ProfileKind::kEv, 1));
  EXPECT_TRUE(test::readable(listener->descriptor(), 0));
}

TEST(NodeStateCrash, UsersSeeEachOthersUseOfAProfile) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const TemporaryDirectory directory;
  ASSERT_EQ(chmod(directory.path().c_str(), 01777), 0);
  // A controller without privileges, in a directory of its own.
  ChildProcess controller([&] {
    if (!become(kOtherUser)) return 1;
    const auto own = open_state(directory / "mrc0");
    return own->update([](NodeSnapshot& s) { return put_profiles(s, 1, 4), 0; });
  });
  ASSERT_EQ(controller.wait(), 0);
  const mode_t mask = umask(077);
  const auto state = open_state(directory / "mrc0");
  EXPECT_EQ(state->add_user(ProfileKind::kEv, 1), 0);
  umask(mask);
  ChildProcess again([&] {
    if (!become(kOtherUser)) return 1;
    const auto own = open_state(directory / "mrc0");
    if (!own->in_use(ProfileKind::kEv, 1)) return 2;
    const int error = own->update([](NodeSnapshot& s) { return s.ev_profiles.clear(), 0; });
    return error == EBUSY ? 0 : 3;
  });
  EXPECT_EQ(again.wait(), 0);
}

TEST(NodeStateCrash, WhatRootSetsTheOwnerCanGoOnWith) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const TemporaryDirectory directory;
  ASSERT_EQ(chown(directory.path().c_str(), kOtherUser, kOtherUser), 0);
  const mode_t mask = umask(077);
  const auto state = open_state(directory.path());
  EXPECT_EQ(state->update([](NodeSnapshot& s) { return put_profiles(s, 1, 4), 0; }), 0);
  umask(mask);
  ChildProcess owner([&] {
    if (!become(kOtherUser)) return 1;
    const auto own = open_state(directory.path());
    if (own->snapshot()->version != 1) return 2;
    if (own->listen() == nullptr) return 3;
    return own->update([](NodeSnapshot& s) { return put_profiles(s, 2, 4), 0; });
  });
  EXPECT_EQ(owner.wait(), 0);
  EXPECT_EQ(state->snapshot()->version, 2u);
}

TEST(NodeStateCrash, WithoutUsersDirectoryAnotherUserIsToldSo) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const TemporaryDirectory directory;
  ASSERT_EQ(chmod(directory.path().c_str(), 0755), 0);
  const auto state = open_state(directory.path());
  ASSERT_EQ(state->update([](NodeSnapshot& s) { return put_profiles(s, 1, 4), 0; }), 0);
  ASSERT_EQ(chmod((directory / "users").c_str(), 0755), 0);
  ChildProcess other([&] {
    if (!become(kOtherUser)) return 1;
    const auto own = open_state(directory.path());
    if (own->add_user(ProfileKind::kEv, 1) != EACCES) return 2;
    return 0;
  });
  EXPECT_EQ(other.wait(), 0);
  std::filesystem::remove_all(directory / "users");
  ChildProcess another([&] {
    if (!become(kOtherUser)) return 1;
    const auto own = open_state(directory.path());
    return own->add_user(ProfileKind::kEv, 1) == EACCES ? 0 : 2;
  });
  EXPECT_EQ(another.wait(), 0);
}

}  // namespace
}  // namespace mrc::node
