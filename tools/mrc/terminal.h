// What is written for people: colours where they are wanted, bars and columns of blocks.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace mrc::tool {

// Knows whether a stream is a terminal that shows colours. NO_COLOR (see no-color.org) and
// TERM=dumb turn them off.
class Terminal {
 public:
  explicit Terminal(std::FILE* stream);

  bool is_tty() const { return is_tty_; }
  std::FILE* stream() const { return stream_; }

  std::string bold(std::string_view text) const { return paint("1", text); }
  std::string dim(std::string_view text) const { return paint("2", text); }
  std::string red(std::string_view text) const { return paint("1;31", text); }
  std::string green(std::string_view text) const { return paint("1;32", text); }
  std::string yellow(std::string_view text) const { return paint("33", text); }
  std::string cyan(std::string_view text) const { return paint("36", text); }

 private:
  std::string paint(std::string_view code, std::string_view text) const;

  std::FILE* stream_;
  bool is_tty_;
  bool colours_;
};

// One line of blocks, one column per value, each between nothing (0) and a full block (`full`).
std::string spark_line(std::span<const double> values, double full);
// The same with `rows` lines, top line first.
std::vector<std::string> column_chart(std::span<const double> values, double full, unsigned rows);

// A line that tells how far things are, not before two seconds have passed: one that changes on a
// terminal, elsewhere another one every ten seconds.
class Progress {
 public:
  Progress(const Terminal& terminal, std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Whether an update would show; details are not cheap to put together.
  bool due() const;
  void update(double share, std::string_view details = {});
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  const Terminal& terminal_;
  std::string what_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_;
  bool shown_ = false;
};

// The same for what cannot tell how far it is, such as a call that waits for a host: says on stderr
// what takes so long, and for how long. A thread of its own does, from its making to its end; it
// takes no signals.
class LongWait {
 public:
  explicit LongWait(std::string what);
  ~LongWait();
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;

 private:
  void tell();

  const std::string what_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread teller_;
};

}  // namespace mrc::tool
