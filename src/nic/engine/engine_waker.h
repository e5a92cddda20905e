// Who does an engine's work, and who is woken for it: the engine lock, doorbells, deadlines, naps,
// sleep, and the two ways of taking the work over.
//
// Whoever holds the engine lock does the work: the engine thread, or a program thread that posts or
// polls and finds the lock free. The waker knows nothing of that work but two calls it makes when
// the lock is given up (unlock()): when must the engine run next, and run once more.
//
// Why nothing is forgotten. The accesses this rests on are sequentially consistent, so of two
// threads that each store and then load what the other stores, at least one sees the other's store.
//
// 1. Doorbells. A poster stores its work, pushes a doorbell and tries the lock. If it gets the lock
//    it does the work. If not, somebody holds it, or waits for it and will; whoever that is looks
//    at the doorbells after giving the lock up, and so after the push (engine_lock.h).
// 2. Deadlines. Whoever gives the lock up stores in `wanted_at_` when the engine must run next,
//    0 for at once, then loads `sleeps_until_`, and wakes the thread if that is later. The thread
//    stores in `sleeps_until_` when it will wake by itself, then loads `wanted_at_`, the doorbells
//    and the flags of 4, and only then sleeps. Either the thread sees the earlier deadline and
//    stays awake, or the other sees that it sleeps. A signal between that look and the system call
//    is kept by the descriptor, which makes the call return at once.
// 3. Late doorbells. A poster that leaves its work to the next poll (ring_later()) pushes and then
//    loads `sleeps_until_`: as 2, with the doorbell in place of the deadline. A thread that is
//    awake or naps comes by within kTurnNs.
// 4. Calls. stop(), want_take_over() and report_overrun() raise a flag and then wake a thread that
//    said it sleeps or naps; the thread says so first and then looks at the flags, as in 2.
// 5. Packets. The back end's descriptor is among those the thread sleeps on.
//
// Program threads take over by polling. One that polls without pause would fight with the engine
// thread for the lock and for the packets. So while the last poll is less than kPollingNs old the
// engine thread only naps: it ignores packets and deadlines, which the poller sees to, for 5 us at
// first and twice as long each time it finds the program still polling, up to kNapNs. Whoever polls
// without pause is back within one or two microseconds, and where many share few processors, each
// giving its own away after a poll in vain, within kTurnNs; the nap then lasts that long too, since
// of eight threads that wake up every 100 us nobody gets anything done. A program that polls now
// and then and spins on a word of memory in between is not, and has the engine thread wait for its
// packets. Naps of full length are those of a thread that takes no processor from others when it
// wakes up (SCHED_BATCH): where all processors are busy it waits for the end of a time slice.
// Before, it took a poller's processor away every 100 us, 64 bytes needed 19 us at the 99th
// percentile instead of 12, and one queue pair carried a tenth less. With all naps like that NCCL's
// 4 KiB took 0.15 ms instead of 0.10, two ranks on four processors. For packets that it is to take
// itself it sleeps as any thread. A program that asks for a notification says that it stops
// polling, which ends the nap. A nap that misses a wake-up does no harm: it is over after kTurnNs.
//
// Where a poller has lost its processor to others (crowding.h), a poll in vain waits for packets
// instead of being repeated. It counts as a poll until it ends. What another thread completes
// meanwhile is seen kPollWaitNs later at most.
//
// The engine thread takes over where one program thread polls for many busy engines and is too slow
// for all of them: it goes round without sleeping, posters only ring, pollers only look at their
// completions, until nothing has moved for a while. A poster that saw `taken_over_` may rely on a
// round after its push: the thread lowers the flag (give_back()) before its last round, and looks
// at the doorbells after that.
#pragma once

#include <atomic>

#include "base/types.h"
#include "nic/engine/engine_inbox.h"
#include "nic/engine/engine_lock.h"
#include "nic/engine/wake_descriptors.h"

namespace mrc::nic {

class EngineWaker {
 public:
  static constexpr DurationNs kPolledRecentlyNs = 50 * kMicrosecondNs;
  static constexpr DurationNs kPollingNs = 5 * kMicrosecondNs;
  static constexpr DurationNs kFirstNapNs = 5 * kMicrosecondNs;
  static constexpr DurationNs kNapNs = 100 * kMicrosecondNs;
  static constexpr DurationNs kTurnNs = kMillisecondNs;
  static constexpr DurationNs kPollWaitNs = 100 * kMicrosecondNs;

  // --- The lock.
  void lock() { lock_.lock(); }
  bool try_lock() { return lock_.try_lock(); }
  // `pump.next_run()` says when the engine must run next (0 = at once), `pump.progress()` takes
  // doorbells and does what they ask for. Both are called under the lock.
  template <typename Pump>
  void unlock(Pump& pump) {
    for (;;) {
      wanted_at_.store(pump.next_run());
      lock_.unlock();
      if (!inbox_.has_doorbells() || !lock_.try_lock()) break;
      pump.progress();
    }
    if (wanted_at_.load() < sleeps_until_.load()) wake_sleeper();
  }

  // --- Any thread, without the lock.
  // There is new work behind `doorbell`. True: the caller has the lock now, and does the work.
  bool ring(Doorbell& doorbell) {
    inbox_.push(doorbell);
    return !taken_over_.load() && lock_.try_lock();
  }
  // The same, and it may wait until the program polls, which it does at short intervals.
  void ring_later(Doorbell& doorbell) {
    inbox_.push(doorbell);
    if (sleeps_until_.load() != 0) wake_sleeper();
  }
  struct Poll {
    bool has_lock = false;       // the caller does the work
    bool without_pause = false;  // the last poll is less than kPolledRecentlyNs old
    TimeNs now = 0;
  };
  // An empty completion queue was polled. Whoever gets the lock calls end_poll() after giving it
  // up: a round may take longer than a program that polls without pause stays away.
  Poll begin_poll();
  void end_poll(bool takes_turns);
  // Instead of end_poll(): waits until `backend` is readable, the engine must run, or kPollWaitNs
  // are over. The lock is free meanwhile, so that who posts does its work; the engine thread naps.
  void wait_for_packet(int backend, TimeNs now);
  bool polled_recently(TimeNs now) const {
    return now - polled_at_.load(std::memory_order_relaxed) < kPolledRecentlyNs;
  }
  void polling_ends();    // the program will wait for a notification
  void report_overrun();  // see EngineInbox
  void want_take_over();  // there is much to do: the thread shall take over
  void stop();            // the thread shall end

  // --- The engine thread.
  int open() { return descriptors_.open(); }  // before it starts
  bool stopping() const { return stopping_.load(); }
  bool take_over_wanted() const { return take_over_wanted_.load(); }
  void take_over() { taken_over_.store(true); }
  void give_back();  // and one more round behind it
  // A program does the work by polling, so far as can be seen.
  bool program_polls(TimeNs now) const {
    const bool turns = takes_turns_.load(std::memory_order_relaxed);
    return now - polled_at_.load(std::memory_order_relaxed) < (turns ? kTurnNs : kPollingNs);
  }
  void nap();
  void end_naps() { nap_ns_ = kFirstNapNs; }  // the next one is short again
  // Until the engine must run, at the latest until `latest`.
  void sleep(TimeNs latest);
  WakeDescriptors& descriptors() { return descriptors_; }

  // --- Under the lock.
  EngineInbox& inbox() { return inbox_; }

 private:
  void call_thread();  // ends its nap or its sleep
  // Of the engine thread: whether it takes a processor from others when it wakes up.
  void be_polite(bool polite);
  void end_nap();
  void wake_sleeper();

  EngineLock lock_;
  EngineInbox inbox_;
  WakeDescriptors descriptors_;
  std::atomic<TimeNs> wanted_at_{kNever};
  std::atomic<TimeNs> sleeps_until_{0};  // 0: awake, or napping
  std::atomic<TimeNs> polled_at_{0};
  std::atomic<bool> takes_turns_{false};  // the last to poll, see Crowding
  std::atomic<bool> napping_{false};
  std::atomic<bool> take_over_wanted_{false};
  std::atomic<bool> taken_over_{false};  // the thread does it all
  std::atomic<bool> stopping_{false};
  DurationNs nap_ns_ = kFirstNapNs;  // of the engine thread
  bool polite_ = false;              // likewise
};

}  // namespace mrc::nic
