// Looks after a running measurement: Ctrl-C, no progress, a peer that hung up, the progress line
// and the lines of --report-every; and waits without standing in anybody's way.
#pragma once

#include <sched.h>

#include <cstdint>
#include <ctime>
#include <functional>

#include "collective/exchange.h"
#include "terminal.h"

namespace mrc::tool::perf {

// Nanoseconds of CLOCK_MONOTONIC.
std::int64_t now_ns();

struct Interval {
  double clock_s = 0;  // CLOCK_MONOTONIC at its end
  double start_s = 0;  // both since the start of the measurement
  double end_s = 0;
  std::uint64_t messages = 0;
};

struct WatchOptions {
  double timeout_s = 30;
  double report_every_s = 0;
  bool peer_may_speak = false;  // it measures as well and may be done before us
  std::function<void(const Interval&)> on_interval;
  std::string suspicion;  // what both ends know of each other and speaks against them
};

class Watch {
 public:
  Watch(const WatchOptions& options, collective::Exchange& exchange, const Terminal& terminal);

  // To be called all the time, with the messages complete so far and how far we are. False when
  // somebody wants us to stop; throws Failure when nothing moves or the peer is gone.
  bool keep_going(std::int64_t now, std::uint64_t messages, double share);
  // The time is over and so many messages are still under way: says so after 2 s, then 4, 8...
  void note_late(std::int64_t now, std::uint64_t under_way);

 private:
  void check_peer();

  const WatchOptions& options_;
  collective::Exchange& exchange_;
  Progress progress_;
  std::int64_t start_ns_;
  std::int64_t moved_ns_;
  std::int64_t next_check_ns_;
  std::int64_t interval_ns_;
  std::uint64_t moved_messages_ = 0;
  std::uint64_t interval_messages_ = 0;
  std::string why_silent() const;
  void tell_standstill(std::int64_t now);

  struct Late {
    std::int64_t since_ns = 0;
    std::int64_t next_ns = 0;
  } late_;
  std::int64_t next_standstill_ns_ = 0;  // when that nothing moves is told again; 0: it moves
};

// Waiting by looking again and again, without standing in the way of whom we wait for: on a machine
// with fewer processors than busy threads the peer may need ours.
class Patience {
 public:
  // To be told of every look, and whether it found anything.
  void looked(bool found) {
    looks_ = found ? 0 : looks_ + 1;
    if (looks_ > kLooks + kYields) {
      constexpr timespec kNap{.tv_sec = 0, .tv_nsec = 50'000};
      nanosleep(&kNap, nullptr);
    } else if (looks_ > kLooks) {
      sched_yield();
    }
  }

 private:
  static constexpr unsigned kLooks = 256;
  // Whoever yields is ready to run all the time. Many of them can keep a scheduler from ever
  // running what they wait for, so that long waits are slept through.
  static constexpr unsigned kYields = 256;
  unsigned looks_ = 0;
};

}  // namespace mrc::tool::perf
