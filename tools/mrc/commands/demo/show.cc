#include "commands/demo/show.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "text.h"

namespace mrc::tool::demo {
namespace {

constexpr double kPageEveryS = 0.25;
constexpr double kLineEveryS = 2;
constexpr std::size_t kEvents = 8;
constexpr std::size_t kHistory = 60;
constexpr unsigned kBarColumns = 40;

std::string megabits(double bits_per_second) {
  return fmt::format("{:7.1f} Mb/s", bits_per_second / 1e6);
}

std::string bar(double value, double full) {
  const double share = full > 0 ? std::clamp(value / full, 0.0, 1.0) : 0;
  const auto columns = static_cast<unsigned>(std::lround(share * kBarColumns));
  std::string text;
  for (unsigned i = 0; i < kBarColumns; ++i)
    text += i < columns ? "█" : "·";
  return text;
}

std::string job_line(const Snapshot& s) {
  return fmt::format(
      "all-reduce {} rounds, {:.0f} MB checked, {} wrong; training step {}/{}, "
      "loss {:.4f}",
      s.rounds, static_cast<double>(s.checked_bytes) / 1e6, s.wrong, s.step, s.steps, s.loss);
}

std::string path_line(const Snapshot& s) {
  return fmt::format("{} good, {} skipped, {} bad; {} packets sent again", s.paths_good,
                     s.paths_skipped, s.paths_bad, grouped(s.retransmitted));
}

}  // namespace

Show::Show(std::FILE* out) : terminal_(out) {}

void Show::chapter(const std::string& title) {
  leave_page();
  title_ = title;
  events_.clear();
  history_.clear();
  next_update_s_ = 0;
  fmt::print(terminal_.stream(), "{}\n", terminal_.bold(title));
  std::fflush(terminal_.stream());
}

void Show::address(const std::string& url) {
  fmt::print(terminal_.stream(), "page in the browser: {}\n", url);
  std::fflush(terminal_.stream());
}

void Show::event(double at_s, const std::string& what) {
  std::string line = fmt::format("{:6.1f} s  {}", at_s, what);
  if (!terminal_.is_tty()) {
    fmt::print(terminal_.stream(), "{}\n", line);
    std::fflush(terminal_.stream());
  }
  events_.push_back(std::move(line));
  if (events_.size() > kEvents) events_.pop_front();
}

void Show::update(double at_s, const Snapshot& snapshot) {
  if (at_s < next_update_s_) return;
  next_update_s_ = at_s + (terminal_.is_tty() ? kPageEveryS : kLineEveryS);
  history_.push_back(snapshot.goodput_bits_per_second);
  if (history_.size() > kHistory) history_.pop_front();
  if (terminal_.is_tty()) {
    draw(page(at_s, snapshot));
    return;
  }
  std::string planes;
  for (const double rate : snapshot.plane_bits_per_second)
    planes += fmt::format(" {:.1f}", rate / 1e6);
  fmt::print(terminal_.stream(), "{:6.1f} s  planes{} Mb/s; paths {}; {}\n", at_s, planes,
             path_line(snapshot), job_line(snapshot));
  std::fflush(terminal_.stream());
}

std::vector<std::string> Show::page(double at_s, const Snapshot& snapshot) const {
  std::vector<std::string> lines;
  for (std::size_t plane = 0; plane < snapshot.plane_bits_per_second.size(); ++plane) {
    const double rate = snapshot.plane_bits_per_second[plane];
    lines.push_back(fmt::format("  plane {}  {} {}", plane,
                                terminal_.cyan(bar(rate, snapshot.plane_full_bits_per_second)),
                                megabits(rate)));
  }
  const std::vector<double> history(history_.begin(), history_.end());
  const double full = *std::max_element(history.begin(), history.end());
  lines.push_back(fmt::format("  goodput  {} {}", terminal_.green(spark_line(history, full)),
                              megabits(snapshot.goodput_bits_per_second)));
  const std::string paths = path_line(snapshot);
  lines.push_back("  paths    " + (snapshot.paths_bad > 0 ? terminal_.yellow(paths) : paths));
  lines.push_back("  job      " + job_line(snapshot));
  lines.push_back(fmt::format("  {:.1f} s", at_s));
  for (const std::string& line : events_)
    lines.push_back("  " + line);
  return lines;
}

void Show::draw(const std::vector<std::string>& lines) {
  if (drawn_ > 0) fmt::print(terminal_.stream(), "\033[{}A", drawn_);
  for (const std::string& line : lines)
    fmt::print(terminal_.stream(), "\r{}\033[K\n", line);
  fmt::print(terminal_.stream(), "\033[J");
  drawn_ = lines.size();
  std::fflush(terminal_.stream());
}

void Show::leave_page() { drawn_ = 0; }

}  // namespace mrc::tool::demo
