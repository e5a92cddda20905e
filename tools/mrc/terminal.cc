#include "terminal.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "os/environment.h"

namespace mrc::tool {
namespace {

constexpr unsigned kEighths = 8;
constexpr std::array<std::string_view, kEighths + 1> kBlocks = {" ", "▁", "▂", "▃", "▄",
                                                                "▅", "▆", "▇", "█"};
constexpr std::chrono::seconds kProgressAfter{2};
constexpr std::chrono::milliseconds kProgressPeriod{200};
constexpr std::chrono::seconds kLinePeriod{10};

bool wants_colours(bool is_tty) {
  const char* no_color = os::environment("NO_COLOR");
  const char* term = os::environment("TERM");
  const bool refused = no_color != nullptr && *no_color != '\0';
  return is_tty && !refused && (term == nullptr || std::string_view(term) != "dumb");
}

}  // namespace

Terminal::Terminal(std::FILE* stream)
    : stream_(stream), is_tty_(isatty(fileno(stream)) == 1), colours_(wants_colours(is_tty_)) {}

std::string Terminal::paint(std::string_view code, std::string_view text) const {
  if (!colours_) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

std::vector<std::string> column_chart(std::span<const double> values, double full, unsigned rows) {
  std::vector<std::string> lines(rows);
  for (const double value : values) {
    const double share = full > 0 ? std::clamp(value / full, 0.0, 1.0) : 0.0;
    auto eighths = static_cast<unsigned>(std::lround(share * rows * kEighths));
    if (value > 0) eighths = std::max(eighths, 1U);
    for (unsigned row = rows; row-- > 0;) {
      const unsigned here = std::min(eighths, kEighths);
      lines[row] += kBlocks[here];
      eighths -= here;
    }
  }
  return lines;
}

std::string spark_line(std::span<const double> values, double full) {
  return column_chart(values, full, 1).front();
}

Progress::Progress(const Terminal& terminal, std::string what)
    : terminal_(terminal), what_(std::move(what)), next_(start_ + kProgressAfter) {}

Progress::~Progress() {
  if (shown_ && terminal_.is_tty()) fmt::print(terminal_.stream(), "\r\033[K");
}

bool Progress::due() const { return Clock::now() >= next_; }

void Progress::update(double share, std::string_view details) {
  if (!due()) return;
  shown_ = true;
  const std::string line =
      fmt::format("{} {:3.0f} %{}{}", what_, 100 * share, details.empty() ? "" : "  ", details);
  if (terminal_.is_tty()) {
    next_ = Clock::now() + kProgressPeriod;
    fmt::print(terminal_.stream(), "\r{}\033[K", line);
  } else {
    next_ = Clock::now() + kLinePeriod;
    fmt::print(terminal_.stream(), "{}\n", line);
  }
  std::fflush(terminal_.stream());
}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

LongWait::LongWait(std::string what) : what_(std::move(what)) {
  // Signals are for the thread that waits: they must end its calls.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  teller_ = std::thread([this] { tell(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LongWait::~LongWait() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  teller_.join();
}

void LongWait::tell() {
  const Terminal terminal(stderr);
  const std::chrono::seconds period = terminal.is_tty() ? std::chrono::seconds(1) : kLinePeriod;
  std::chrono::seconds passed = kProgressAfter;
  bool shown = false;
  std::unique_lock lock(mutex_);
  const auto start = std::chrono::steady_clock::now();
  for (; !changed_.wait_until(lock, start + passed, [this] { return over_; }); passed += period) {
    shown = true;
    if (terminal.is_tty()) {
      fmt::print(stderr, "\r{}, {} s so far\033[K", what_, passed.count());
    } else {
      fmt::print(stderr, "{}, {} s so far\n", what_, passed.count());
    }
    std::fflush(stderr);
  }
  if (shown && terminal.is_tty()) fmt::print(stderr, "\r\033[K");
}

}  // namespace mrc::tool
