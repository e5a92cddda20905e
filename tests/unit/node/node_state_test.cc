#include "node/node_state.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <thread>

#include "unit/node/node_state_support.h"

namespace mrc::node {
namespace {

using test::ChildProcess;
using test::open_state;
using test::put_profiles;
using test::TemporaryDirectory;

constexpr int kPatienceMs = 20'000;

TEST(NodeState, StartsWithAllPortsEnabledAndNoProfiles) {
  const TemporaryDirectory directory;
  const auto state = open_state(directory / "deep/er/mrc0");
  const auto snapshot = state->snapshot();
  EXPECT_EQ(snapshot->version, 0u);
  EXPECT_EQ(snapshot->ports_enabled, PortMask::first(kMaxPorts));
  EXPECT_TRUE(snapshot->formats.empty());
  EXPECT_TRUE(snapshot->ev_profiles.empty());
  EXPECT_TRUE(snapshot->cc_profiles.empty());
}

TEST(NodeState, ExplainsInOneLineWhyADirectoryCannotBeUsed) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "file") << "x";
  std::string error;
  EXPECT_EQ(NodeState::open(directory / "file", error), nullptr);
  EXPECT_EQ(error, directory / "file" + ": Not a directory");
  EXPECT_EQ(NodeState::open(directory / "file/below", error), nullptr);
  EXPECT_NE(error.find("Not a directory"), std::string::npos);
  EXPECT_EQ(NodeState::open("", error), nullptr);
  EXPECT_EQ(error.find('\n'), std::string::npos);
}

// While this lives, no descriptor is to be had.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit none{0, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST(NodeState, WhatCannotBeReadNowIsNotForgotten) {
  const TemporaryDirectory directory;
  const auto writer = open_state(directory.path());
  const auto reader = open_state(directory.path());
  const auto put = [](std::uint64_t id) {
    return [id](NodeSnapshot& snapshot) { return put_profiles(snapshot, id, 2), 0; };
  };
  ASSERT_EQ(writer->update(put(7)), 0);
  EXPECT_EQ(reader->snapshot()->ev_profiles.count(7), 1u);
  ASSERT_EQ(writer->update(put(8)), 0);
  {
    const NoDescriptors scarce;
    EXPECT_EQ(reader->snapshot()->ev_profiles.count(7), 1u) << "what it held before";
    EXPECT_EQ(reader->snapshot()->ev_profiles.count(8), 0u);
    EXPECT_EQ(reader->update(put(9)), EMFILE);
  }
  EXPECT_EQ(reader->snapshot()->ev_profiles.count(8), 1u) << "it is read when that is possible";
  ASSERT_EQ(reader->update(put(9)), 0);
  EXPECT_EQ(writer->snapshot()->ev_profiles.size(), 3u) << "nothing of others is lost";
}

TEST(NodeState, KeepsEverythingForAnotherProcessAndForLater) {
  const TemporaryDirectory directory;
  const auto ports = PortMask(0b1011);
  {
    const ChildProcess writer([&] {
      const auto state = open_state(directory.path());
      return state->update([&](NodeSnapshot& snapshot) {
        snapshot.ports_enabled = ports;
        put_profiles(snapshot, 7, 16);
        snapshot.ev_profiles[7].evs[3].denied = true;
        snapshot.ev_profiles[7].fields = {{.width = 16, .mask = 0xFF}};
        snapshot.ev_profiles[7].evs[4].compact = wire::structured_ev(9);
        return 0;
      });
    });
    EXPECT_EQ(const_cast<ChildProcess&>(writer).wait(), 0);
  }
  const auto state = open_state(directory.path());
  const auto snapshot = state->snapshot();
  NodeSnapshot expected;
  put_profiles(expected, 7, 16);
  expected.ev_profiles[7].evs[3].denied = true;
  expected.ev_profiles[7].fields = {{.width = 16, .mask = 0xFF}};
  expected.ev_profiles[7].evs[4].compact = wire::structured_ev(9);
  EXPECT_EQ(snapshot->version, 1u);
  EXPECT_EQ(snapshot->ports_enabled, ports);
  EXPECT_EQ(snapshot->formats, expected.formats);
  EXPECT_EQ(snapshot->ev_profiles, expected.ev_profiles);
  ASSERT_EQ(snapshot->cc_profiles.size(), 1u);
  EXPECT_EQ(snapshot->cc_profiles.at(7).cc.nscc.gamma, 0.8F);
}

TEST(NodeState, ARefusedChangeChangesNothing) {
  const TemporaryDirectory directory;
  const auto state = open_state(directory.path());
  const int result = state->update([](NodeSnapshot& snapshot) {
    snapshot.ports_enabled = PortMask(1);
    return ENOENT;
  });
  EXPECT_EQ(result, ENOENT);
  EXPECT_EQ(state->snapshot()->version, 0u);
  EXPECT_EQ(state->snapshot()->ports_enabled, PortMask::first(kMaxPorts));
}

TEST(NodeState, AChangeThatChangesNothingWritesNothing) {
  const TemporaryDirectory directory;
  const auto state = open_state(directory.path());
  ASSERT_EQ(state->update([](NodeSnapshot& s) { return put_profiles(s, 1, 4), 0; }), 0);
  ASSERT_EQ(state->update([](NodeSnapshot& s) { return put_profiles(s, 1, 4), 0; }), 0);
  EXPECT_EQ(state->snapshot()->version, 1u);
}

TEST(NodeState, RefusesMoreThanTheLimits) {
  const TemporaryDirectory directory;
  const auto state = open_state(directory.path());
  const auto formats = [](NodeSnapshot& snapshot) {
    for (std::uint64_t id = 0; id <= kMaxFormatProfiles; ++id)
      snapshot.formats[id].state = ProfileState::kOffline;
    return 0;
  };
  EXPECT_EQ(state->update(formats), E2BIG);
  const auto evs = [](NodeSnapshot& snapshot) {
    put_profiles(snapshot, 1, kMaxEvsPerQp + 1);
    return 0;
  };
  EXPECT_EQ(state->update(evs), E2BIG);
  EXPECT_EQ(state->snapshot()->version, 0u);
}

TEST(NodeState, HandsOutTheSameSnapshotWhileNothingChanges) {
  const TemporaryDirectory directory;
  const auto state = open_state(directory.path());
  ASSERT_EQ(state->update([](NodeSnapshot& s) { return put_profiles(s, 1, 4), 0; }), 0);
  const auto first = state->snapshot();
  EXPECT_EQ(state->snapshot(), first);
  const auto other = open_state(directory.path());
  ASSERT_EQ(other->update([](NodeSnapshot& s) { return put_profiles(s, 2, 4), 0; }), 0);
  EXPECT_NE(state->snapshot(), first);
  EXPECT_EQ(first->ev_profiles.size(), 1u);
  EXPECT_EQ(state->snapshot()->ev_profiles.size(), 2u);
}

// Files get the number of one just deleted and the same time stamp; a reader must notice all the
// same.
TEST(NodeState, AReaderNeverMissesTheLastOfManyQuickChanges) {
  const TemporaryDirectory directory;
  const auto writer = open_state(directory.path());
  const auto reader = open_state(directory.path());
  for (std::uint32_t i = 0; i < 300; ++i) {
    ASSERT_EQ(writer->update([&](NodeSnapshot& s) {
      s.ports_enabled = PortMask(i + 1);
      return 0;
    }),
              0);
    ASSERT_EQ(reader->snapshot()->ports_enabled.bits(), i + 1);
  }
}

TEST(NodeState, TheChangeDescriptorTellsSeveralProcesses) {
  const TemporaryDirectory directory;
  const auto state = open_state(directory.path());
  EXPECT_FALSE(test::readable(state->change_descriptor(), 0));
  const auto await_change = [&] {
    const auto own = open_state(directory.path());
    while (own->snapshot()->version == 0) {
      if (!test::readable(own->change_descriptor(), kPatienceMs)) return 1;
      own->acknowledge_change();
    }
    return 0;
  };
  ChildProcess first(await_change);
  ChildProcess second(await_change);
  ASSERT_EQ(state->update([](NodeSnapshot& s) { return put_profiles(s, 1, 4), 0; }), 0);
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
  ASSERT_TRUE(test::readable(state->change_descriptor(), kPatienceMs));
  state->acknowledge_change();
  EXPECT_FALSE(test::readable(state->change_descriptor(), 0));
}

TEST(NodeState, ADirectoryThatIsRemovedAndComesBackIsWatchedAgain) {
  const TemporaryDirectory directory;
  const auto state = open_state(directory / "mrc0");
  ASSERT_EQ(state->update([](NodeSnapshot& s) { return put_profiles(s, 1, 4), 0; }), 0);
  EXPECT_EQ(state->snapshot()->ev_profiles.size(), 1u);
  std::filesystem::remove_all(directory / "mrc0");
  ASSERT_TRUE(test::readable(state->change_descriptor(), kPatienceMs));
  state->acknowledge_change();
  EXPECT_TRUE(state->snapshot()->ev_profiles.empty());
  const auto other = open_state(directory / "mrc0");
  ASSERT_EQ(other->update([](NodeSnapshot& s) { return put_profiles(s, 2, 4), 0; }), 0);
  while (state->snapshot()->ev_profiles.empty()) {
    ASSERT_TRUE(test::readable(state->change_descriptor(), kPatienceMs));
    state->acknowledge_change();
  }
}

TEST(NodeState, ThreadsMayReadAndWriteAtOnce) {
  const TemporaryDirectory directory;
  const auto state = open_state(directory.path());
  constexpr std::uint64_t kWriters = 4;
  constexpr std::uint64_t kChanges = 25;
  std::vector<std::thread> threads;
  for (std::uint64_t id = 1; id <= kWriters; ++id) {
    threads.emplace_back([&state, id] {
      for (unsigned i = 0; i < kChanges; ++i) {
        EXPECT_EQ(state->update([&](NodeSnapshot& s) { return put_profiles(s, id, i + 1), 0; }), 0);
        EXPECT_GE(state->snapshot()->version, i + 1);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(state->snapshot()->version, kWriters * kChanges);
  for (std::uint64_t id = 1; id <= kWriters; ++id)
    EXPECT_EQ(state->snapshot()->ev_profiles.at(id).evs.size(), kChanges);
}

TEST(NodeState, OpensNothingThatWouldSurviveExec) {
  const TemporaryDirectory directory;
  const auto state = open_state(directory.path());
  ASSERT_EQ(state->update([](NodeSnapshot& s) { return put_profiles(s, 1, 4), 0; }), 0);
  ASSERT_EQ(state->add_user(ProfileKind::kEv, 1), 0);
  state->publish_ev_state(1, state->snapshot()->ev_profiles.at(1).evs[0],
                          core::EvState::kAssumedBad);
  const auto listener = state->listen();
  ASSERT_NE(listener, nullptr);
  state->send_event({.profile_id = 1});
  for (int fd = 3; fd < 1'024; ++fd) {
    const int flags = fcntl(fd, F_GETFD);
    if (flags < 0) continue;
    char target[512] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    if (readlink(link.c_str(), target, sizeof target - 1) < 0) continue;
    const std::string name = target;
    if (name.find(directory.path()) != std::string::npos || name.starts_with("socket:") ||
        name.starts_with("anon_inode:")) {
      EXPECT_NE(flags & FD_CLOEXEC, 0) << name;
    }
  }
}

}  // namespace
}  // namespace mrc::node
