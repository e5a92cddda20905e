// The wake-up protocol of an engine, without a device: threads ring, poll, set deadlines, call, and
// wait for a pump that only counts. An engine thread of these tests sleeps for an hour if it is
// let, so that a lost wake-up is a hang, which a test reports with the side that hung.
#include "nic/engine/engine_waker.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "os/clock.h"
#include "os/descriptor.h"

namespace mrc::nic::test {
namespace {

constexpr TimeNs kPatienceNs = 20 * kSecondNs;
constexpr TimeNs kHourNs = 3'600 * kSecondNs;
// A stress test ends after so many rounds of each thread, or after so long on a busy machine.
constexpr unsigned kRounds = 20'000;
constexpr TimeNs kStressNs = kSecondNs;

// Waits of 0 to 4,095 turns of an empty loop, short ones as often as long ones: some nanoseconds to
// some microseconds. Without them threads meet at the same few points of their ways. One in eight
// sleeps, about 50 us: others then get past this thread even where there is one processor for all.
class Pauses {
 public:
  explicit Pauses(unsigned seed) : random_(seed) {}
  void pause() {
    if (random_() % 8 == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(1));
      return;
    }
    const std::uint_fast32_t most = 1U << random_() % 13;
    for (volatile std::uint_fast32_t left = random_() % most; left > 0;)
      left = left - 1;
  }

 private:
  std::minstd_rand random_;
};

// What a poster has posted, and what was taken of it.
struct Posts : Doorbell {
  std::atomic<std::uint64_t> posted{0};
  std::atomic<std::uint64_t> taken{0};
};

// Plain fields belong to the lock: the thread sanitizer watches over them.
class CountingPump {
 public:
  explicit CountingPump(EngineInbox& inbox) : inbox_(inbox) {}

  TimeNs next_run() const { return deadline_; }
  void progress() {
    ++rounds_;
    inbox_.take([this](Doorbell& doorbell) {
      auto& posts = static_cast<Posts&>(doorbell);
      posts.taken.store(posts.posted.load());
      pauses_.pause();
    });
    pauses_.pause();
    if (inbox_.take_overrun()) ++overruns_;
  }
  // A round that also looks at the clock, as those of the engine thread and of pollers.
  void round() {
    if (deadline_ <= os::monotonic_now()) {
      deadline_ = kNever;
      expired_.store(armed_);
    }
    progress();
  }
  // Returns what expired() comes to when the deadline has passed.
  std::uint64_t arm(TimeNs at) {
    deadline_ = std::min(deadline_, at);
    return ++armed_;
  }
  std::uint64_t expired() const { return expired_.load(); }

 private:
  EngineInbox& inbox_;
  Pauses pauses_{1};
  TimeNs deadline_ = kNever;
  std::uint64_t armed_ = 0;
  std::uint64_t rounds_ = 0;
  std::uint64_t overruns_ = 0;
  std::atomic<std::uint64_t> expired_{0};
};

class EngineWakerTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(waker.open(), 0); }
  void TearDown() override { end_engine_thread(); }

  // --- Threads.
  // As the engine thread of the product, without links and sockets to look after.
  void start_engine_thread() {
    engine_thread_ = std::thread([this] {
      Pauses pauses(1);
      while (!waker.stopping()) {
        if (waker.take_over_wanted()) run_taken_over();
        if (waker.polled_recently(os::monotonic_now()) || !waker.try_lock()) {
          where_ = "naps";
          waker.nap();
          continue;
        }
        where_ = "works";
        pump.round();
        waker.unlock(pump);
        where_ = "sleeps";
        pauses.pause();
        waker.sleep(os::monotonic_now() + kHourNs);
      }
    });
  }
  void run_taken_over() {
    where_ = "has taken over";
    waker.take_over();
    for (unsigned i = 0; i < 5; ++i) {
      if (waker.try_lock()) {
        pump.round();
        waker.unlock(pump);
      }
      sched_yield();
    }
    waker.give_back();
    waker.lock();
    pump.progress();
    waker.unlock(pump);
  }
  // Calls each step again and again in a thread of its own. They begin each round together and wait
  // for each other at its end: otherwise the next post of one would make good what was lost of
  // another.
  void stress(const std::vector<std::function<void()>>& steps) {
    std::vector<std::thread> threads;
    for (const auto& step : steps) {
      threads.emplace_back([&, seed = static_cast<unsigned>(threads.size()) + 2] {
        Pauses pauses(seed);
        const TimeNs end = os::monotonic_now() + kStressNs;
        for (unsigned i = 1; i <= kRounds && meet(i * steps.size()); ++i) {
          pauses.pause();
          step();
          if (os::monotonic_now() >= end) over_.store(true);
        }
        over_.store(true);
      });
    }
    for (std::thread& thread : threads)
      thread.join();
    end_engine_thread();  // before what was rung goes
  }
  bool meet(std::size_t all) {
    met_.fetch_add(1);
    while (!over_.load() && met_.load() < all)
      sched_yield();
    return !over_.load();
  }
  void end_engine_thread() {
    waker.stop();
    if (engine_thread_.joinable()) engine_thread_.join();
  }

  // --- Steps.
  void post_now(Posts& posts) {
    const std::uint64_t mine = posts.posted.fetch_add(1) + 1;
    if (waker.ring(posts)) {
      pump.progress();
      waker.unlock(pump);
    }
    wait([&] { return posts.taken.load() >= mine; }, "a post");
  }
  void post_later(Posts& posts) {
    const std::uint64_t mine = posts.posted.fetch_add(1) + 1;
    waker.ring_later(posts);
    wait([&] { return posts.taken.load() >= mine; }, "a late post");
  }
  void set_deadline(TimeNs in_ns) {
    waker.lock();
    const std::uint64_t mine = pump.arm(os::monotonic_now() + in_ns);
    waker.unlock(pump);
    wait([&] { return pump.expired() >= mine; }, "a deadline");
  }
  void poll_for_a_while() {
    for (unsigned i = 0; i < 20; ++i) {
      if (!waker.begin_poll().has_lock) continue;
      pump.round();
      waker.unlock(pump);
    }
    waker.polling_ends();
  }
  void call() {
    waker.report_overrun();
    wait([&] { return !waker.inbox().has_overrun(); }, "an overrun");
  }
  void ask_for_take_over() {
    waker.want_take_over();
    wait([&] { return !waker.take_over_wanted(); }, "a take-over");
  }

  // One thread that hangs ends the test of all; the first says what it waited for.
  template <typename Done>
  void wait(Done done, const char* what) {
    const TimeNs end = os::monotonic_now() + kPatienceNs;
    for (unsigned turns = 1; !done() && !hung_.load(); ++turns) {
      if (turns % 64 == 0) sched_yield();
      if (os::monotonic_now() < end || hung_.exchange(true)) continue;
      over_.store(true);
      ADD_FAILURE() << what << " was forgotten; the engine thread " << where_.load();
    }
  }

  EngineWaker waker;
  CountingPump pump{waker.inbox()};

 private:
  std::thread engine_thread_;
  std::atomic<const char*> where_{"does not run"};
  std::atomic<std::size_t> met_{0};
  std::atomic<bool> over_{false};  // no new round
  std::atomic<bool> hung_{false};
};

// --- One rule at a time ---

// Nobody but the posters: who does not get the lock relies on the one that has it.
TEST_F(EngineWakerTest, WhoHoldsTheLockTakesWhatWasRungMeanwhile) {
  std::array<Posts, 3> posts;
  stress({[&] { post_now(posts[0]); }, [&] { post_now(posts[1]); }, [&] { post_now(posts[2]); }});
}

// The same with one that waits for the lock, and for which the others stand back.
TEST_F(EngineWakerTest, WhoWaitsForTheLockTakesWhatWasRungMeanwhile) {
  std::array<Posts, 2> posts;
  const auto query = [&] {
    waker.lock();
    waker.unlock(pump);
  };
  stress({[&] { post_now(posts[0]); }, [&] { post_now(posts[1]); }, query, query});
}

TEST_F(EngineWakerTest, ALateDoorbellWakesTheThread) {
  Posts posts;
  start_engine_thread();
  stress({[&] { post_later(posts); }});
}

TEST_F(EngineWakerTest, ADeadlineWakesTheThread) {
  start_engine_thread();
  stress({[&] { set_deadline(0); }});
}

TEST_F(EngineWakerTest, AnEarlierDeadlineWakesTheThread) {
  start_engine_thread();
  stress({[&] { set_deadline(0); }, [&] { set_deadline(20 * kMicrosecondNs); }});
}

TEST_F(EngineWakerTest, ACallReachesAThreadThatSleepsOrNaps) {
  start_engine_thread();
  stress({[&] { call(); }});
}

TEST_F(EngineWakerTest, AWishForATakeOverReachesTheThread) {
  start_engine_thread();
  stress({[&] { ask_for_take_over(); }});
}

// The engine thread works only while it has taken over, so that no other round of it helps.
TEST_F(EngineWakerTest, APostDuringATakeOverIsTakenBeforeItEnds) {
  std::array<Posts, 2> posts;
  stress({[&] { post_now(posts[0]); }, [&] { post_now(posts[1]); }, [&] { run_taken_over(); }});
}

TEST_F(EngineWakerTest, WhoStopsPollingLeavesNothingBehind) {
  Posts posts;
  start_engine_thread();
  stress({[&] {
    poll_for_a_while();
    set_deadline(0);
    post_later(posts);
  }});
}

// --- All of them ---

TEST_F(EngineWakerTest, NothingIsForgottenWhereAllComeTogether) {
  std::array<Posts, 3> posts;
  start_engine_thread();
  stress({[&] { post_now(posts[0]); }, [&] { post_now(posts[1]); }, [&] { post_later(posts[2]); },
          [&] { set_deadline(10 * kMicrosecondNs); }, [&] { poll_for_a_while(); }, [&] { call(); },
          [&] { ask_for_take_over(); }});
}

// --- Without threads ---

TEST_F(EngineWakerTest, ADoorbellRungTwiceIsTakenOnce) {
  Posts posts;
  waker.lock();
  EXPECT_FALSE(waker.ring(posts));
  EXPECT_FALSE(waker.ring(posts));
  unsigned taken = 0;
  waker.inbox().take([&](Doorbell& doorbell) {
    EXPECT_EQ(&doorbell, &posts);
    ++taken;
  });
  EXPECT_EQ(taken, 1U);
  waker.unlock(pump);
  EXPECT_TRUE(waker.ring(posts));
  waker.unlock(pump);
  EXPECT_FALSE(waker.inbox().has_doorbells());
}

TEST_F(EngineWakerTest, PostersAndPollersKeepAwayWhileTheThreadHasTakenOver) {
  Posts posts;
  waker.take_over();
  EXPECT_FALSE(waker.ring(posts));
  EXPECT_FALSE(waker.begin_poll().has_lock);
  EXPECT_TRUE(waker.polled_recently(os::monotonic_now()));
  waker.give_back();
  EXPECT_TRUE(waker.ring(posts));
}

TEST_F(EngineWakerTest, TheSecondPollInARowIsWithoutPause) {
  const EngineWaker::Poll first = waker.begin_poll();
  EXPECT_TRUE(first.has_lock);
  EXPECT_FALSE(first.without_pause);
  EXPECT_TRUE(waker.polled_recently(first.now + EngineWaker::kPolledRecentlyNs - 1));
  EXPECT_FALSE(waker.polled_recently(first.now + EngineWaker::kPolledRecentlyNs));
  waker.unlock(pump);
  waker.polling_ends();
  EXPECT_FALSE(waker.polled_recently(os::monotonic_now()));
}

// The engine thread stays away from a program that polls; for longer from one of many that give
// their processors to each other.
TEST_F(EngineWakerTest, AProgramPollsForAsLongAsItUsuallyStaysAway) {
  waker.end_poll(false);
  const TimeNs soon = os::monotonic_now();
  EXPECT_TRUE(waker.program_polls(soon - EngineWaker::kPollingNs));
  EXPECT_FALSE(waker.program_polls(soon + EngineWaker::kPollingNs));
  waker.end_poll(true);
  EXPECT_TRUE(waker.program_polls(soon + EngineWaker::kPollingNs));
  EXPECT_FALSE(waker.program_polls(os::monotonic_now() + EngineWaker::kTurnNs));
}

TEST_F(EngineWakerTest, APollThatWaitsEndsWithAPacketOrInTime) {
  const TimeNs start = os::monotonic_now();
  const os::Descriptor packets(eventfd(0, EFD_CLOEXEC));
  waker.lock();
  waker.unlock(pump);  // nothing is due
  waker.wait_for_packet(packets.get(), start);
  EXPECT_GE(os::monotonic_now(), start + EngineWaker::kPollWaitNs);
  eventfd_write(packets.get(), 1);
  waker.wait_for_packet(packets.get(), os::monotonic_now());
  EXPECT_TRUE(waker.polled_recently(os::monotonic_now()));
}

TEST_F(EngineWakerTest, SleepEndsAtTheDeadlineOrTheLatestMoment) {
  const TimeNs start = os::monotonic_now();
  waker.sleep(start + kMillisecondNs);
  EXPECT_GE(os::monotonic_now(), start + kMillisecondNs);
  waker.lock();
  const TimeNs deadline = os::monotonic_now() + kMillisecondNs;
  pump.arm(deadline);
  waker.unlock(pump);
  waker.sleep(start + kHourNs);
  EXPECT_GE(os::monotonic_now(), deadline);
}

void set_policy(int policy) {
  const sched_param none{};
  ASSERT_EQ(sched_setscheduler(0, policy, &none), 0);
}

// Naps that follow each other double: the sixth is as long as they get.
void nap_for_long(EngineWaker& waker) {
  for (unsigned i = 0; i < 6; ++i)
    waker.nap();
}

TEST(EngineWaker, WhoNapsForLongTakesNoProcessorFromOthers) {
  std::thread([] {
    EngineWaker waker;
    ASSERT_EQ(waker.open(), 0);
    set_policy(SCHED_OTHER);
    waker.nap();
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER) << "the program may have polled once";
    nap_for_long(waker);
    EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH);
    waker.sleep(1);
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER) << "for packets of its own";
    set_policy(SCHED_IDLE);
    nap_for_long(waker);
    EXPECT_EQ(sched_getscheduler(0), SCHED_IDLE) << "somebody chose that";
    waker.sleep(1);
    EXPECT_EQ(sched_getscheduler(0), SCHED_IDLE);
  }).join();
}

}  // namespace
}  // namespace mrc::nic::test
