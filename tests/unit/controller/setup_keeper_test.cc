// A device that is set up from files over time, by processes that end at any moment.
#include "controller/setup_keeper.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "fabric/input_error.h"
#include "os/descriptor.h"
#include "unit/controller/apply_fixture.h"

namespace mrc::controller {
namespace {

constexpr const char* kTwoEvs =
    "[[ev_profile]]\nid = 7\nmode = \"explicit\"\nformat = 1\nmin_active = 1\n"
    "evs = [\"1:00000001\", \"1:00000002\"]\n";

class Keeper : public ApplyTest {
 protected:
  Keeper() { forget(); }
  void TearDown() override {
    ApplyTest::TearDown();
    forget();
  }
  // What the keepers of other tests wrote down.
  void forget() const {
    std::vector<std::filesystem::path> old;
    for (const auto& entry : std::filesystem::directory_iterator(session_.directory())) {
      if (entry.path().filename().string().starts_with("controller.")) old.push_back(entry.path());
    }
    for (const auto& path : old)
      std::filesystem::remove_all(path);
  }
  void write(const std::string& text) const { std::ofstream(file_) << text; }
  // As a process leaves it that is killed before it has changed anything.
  void leave_begun(const std::string& text) const {
    std::ofstream(session_.directory() + "/controller.begun.1.toml") << text;
  }
  Applied apply(const std::string& text) const {
    write(text);
    return SetupKeeper(session_).apply(file_);
  }
  static std::string denying(const std::string& ev, int profile = 7) {
    return "[[deny]]\nprofile = " + std::to_string(profile) + "\nevs = [\"" + ev + "\"]\n";
  }

  test::TemporaryDirectory directory_;
  std::string file_ = directory_ / "controller.toml";
};

TEST_F(Keeper, KnowsWhatAnEarlierOneHasSet) {
  EXPECT_EQ(apply(kTwoEvs).created, 1U);
  EXPECT_EQ(apply(kTwoEvs).kept, 1U);
  const Applied changed = apply("[[cc_profile]]\nid = 3\n");
  EXPECT_EQ(changed.removed, 1U);
  EXPECT_EQ(changed.created, 1U);
  EXPECT_FALSE(exists(Kind::kEv, kProfile));
}

TEST_F(Keeper, DoesNotCallItsOwnWhatSomebodyElseMade) {
  create(session_, CcSpec{.id = 44});
  EXPECT_THROW(apply("[[cc_profile]]\nid = 44\n"), CtlError);
  EXPECT_THROW(apply("[[cc_profile]]\nid = 44\n"), CtlError) << "nor does the next one";
}

TEST_F(Keeper, GoesOnFromWhereItWasAfterABrokenFile) {
  SetupKeeper keeper(session_);
  write("[[cc_profile]]\nid = 3\n");
  keeper.apply(file_);
  write("[[cc_profile");
  EXPECT_THROW(keeper.apply(file_), fabric::InputError);
  EXPECT_TRUE(exists(Kind::kCc, 3));
  write("[[cc_profile]]\nid = 3\n");
  EXPECT_EQ(keeper.apply(file_).kept, 1U);
}

// A pipe that gives another text to everyone who opens it stands for a file that is being
// rewritten.
TEST_F(Keeper, WritesDownWhatItApplies) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  ASSERT_NE(std::signal(SIGPIPE, SIG_IGN), SIG_ERR);
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int id = 3; !done; ++id) {
      os::Descriptor pipe;
      while (!done && !pipe.valid()) {
        pipe = os::Descriptor(::open(file_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
        std::this_thread::sleep_for(std::chrono::milliseconds(pipe.valid() ? 0 : 1));
      }
      if (!pipe.valid()) break;
      const std::string text = "[[cc_profile]]\nid = " + std::to_string(id) + "\n";
      EXPECT_GT(::write(pipe.get(), text.data(), text.size()), 0);
      pipe.close();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  SetupKeeper(session_).apply(file_);
  done = true;
  writer.join();
  std::vector<std::uint64_t> known;
  const controller::Setup setup = Journal(session_.directory()).known();
  for (const CcSpec& spec : setup.cc_profiles)
    known.push_back(spec.id);
  EXPECT_EQ(known, session_.cc_ids());
}

TEST_F(Keeper, ABadDenialOfAKilledProcessDoesNotStopLaterFiles) {
  apply(kTwoEvs);
  leave_begun(kTwoEvs + denying("4"));
  EXPECT_EQ(apply(kTwoEvs + denying("1")).kept, 1U);
  EXPECT_EQ(states_of(kProfile), "good denied");
}

// The profile was deleted by hand. Made anew it has other EVs, and the one that an earlier file
// denied by its value is gone.
TEST_F(Keeper, AnOldDenialOfAnEvThatIsGoneDoesNotMatter) {
  const std::string text = "[[ev_profile]]\nid = 9\nmode = \"auto\"\nmin_active = 1\ncount = 8\n";
  apply(text);
  apply(text + denying(ev_text(read_evs(session_, 9).front().ev, false), 9));
  remove(session_, Kind::kEv, 9);
  EXPECT_EQ(apply(text).created, 1U);
  EXPECT_EQ(apply(text).kept, 1U);
}

TEST_F(Keeper, WhatIsAsWantedStaysThoughAKilledProcessWantedAnother) {
  apply(kTwoEvs);
  leave_begun(
      "[[ev_profile]]\nid = 7\nmode = \"explicit\"\nformat = 1\nmin_active = 1\n"
      "evs = [\"1:00000009\"]\n");
  const Applied applied = apply(kTwoEvs);
  EXPECT_EQ(applied.kept, 1U);
  EXPECT_EQ(applied.removed, 0U);
}

TEST_F(Keeper, KnowsWhatItDidThoughItCouldNotWriteItDown) {
  const std::string noted = session_.directory() + "/controller.toml";
  std::filesystem::create_directories(noted + "/in_the_way");
  SetupKeeper keeper(session_);
  write("[[cc_profile]]\nid = 3\n");
  EXPECT_THROW(keeper.apply(file_), DeviceChanged);
  EXPECT_TRUE(exists(Kind::kCc, 3));
  std::filesystem::remove_all(noted);
  EXPECT_EQ(keeper.apply(file_).kept, 1U);
}

// Makes a profile that needs a format as soon as the format is there.
class Neighbour {
 public:
  explicit Neighbour(const EvSpec& wanted)
      : thread_([this, wanted] {
          const Session session("");
          while (!stop_ && !made_) {
            try {
              create(session, wanted);
              made_ = true;
            } catch (const CtlError&) {
              std::this_thread::yield();
            }
          }
        }) {}
  bool made() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return made_;
  }
  ~Neighbour() { made(); }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<bool> made_ = false;
  std::thread thread_;
};

// Somebody uses a format of ours before a later step fails, so that it cannot be removed again.
TEST_F(Keeper, WhatCouldNotBeUndoneIsStillKnown) {
  std::string text = "[[format]]\nid = 2\nmode = \"stev\"\nwidths = [16, 16]\n";
  for (int id = 100; id < 120; ++id) {
    text += "[[ev_profile]]\nid = " + std::to_string(id) +
            "\nmode = \"explicit\"\nformat = 1\nmin_active = 1\nevs = [\"1:00000001\"]\n";
  }
  EvSpec theirs = profile_of(50, {"1:00000001"});
  theirs.format = 2;
  SetupKeeper keeper(session_);
  for (bool met = false; !met;) {  // it is a race, and the neighbour may lose it
    Neighbour neighbour(theirs);
    write(text + denying("4", 119));
    try {
      keeper.apply(file_);
      FAIL() << "position 4 of a profile of one EV";
    } catch (const DeviceChanged&) {
      ASSERT_TRUE(exists(Kind::kFormat, 2));
      met = true;
    } catch (const fabric::InputError&) {
      ASSERT_FALSE(neighbour.made() && exists(Kind::kFormat, 2)) << "left behind and not told";
    }
    if (!met && exists(Kind::kEv, 50)) remove(session_, Kind::kEv, 50);
  }
  EXPECT_EQ(apply(text).kept, 1U) << "by the next process";
  EXPECT_EQ(keeper.apply(file_).kept, 21U) << "by this one";
}

}  // namespace
}  // namespace mrc::controller
