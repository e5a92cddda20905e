// mrc top: what `mrc stat` shows, on one page of a terminal that is drawn again every second.
#include <fmt/core.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "command.h"
#include "commands/stat/device_report.h"
#include "os/interrupt.h"
#include "quantity_option.h"
#include "terminal.h"
#include "text.h"

namespace mrc::tool {
namespace {

constexpr std::size_t kUsualRows = 24;
constexpr std::size_t kUsualColumns = 80;
// Pages of processes that move are written ten times a second, those of others once.
constexpr int kFirstPageMs = 250;
constexpr std::chrono::milliseconds kOnePage{1'100};

// Keys come one by one and unseen, and the page has a screen of its own. All is put back at the
// end.
class Screen {
 public:
  Screen() {
    ::tcgetattr(STDIN_FILENO, &before_);
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    fmt::print("\x1b[?1049h\x1b[?25l");
  }
  ~Screen() {
    fmt::print("\x1b[?25h\x1b[?1049l");
    std::fflush(stdout);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Whether somebody pressed q meanwhile, or has gone.
  static bool wait(int milliseconds) {
    pollfd keys{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    char key = 0;
    if (::poll(&keys, 1, milliseconds) <= 0) return false;
    return ::read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q';
  }

 private:
  termios before_{};
};

struct Size {
  std::size_t rows = kUsualRows;
  std::size_t columns = kUsualColumns;
};

Size screen_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return {};
  return {.rows = size.ws_row, .columns = std::max<std::size_t>(size.ws_col, 20)};
}

class TopCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  std::vector<std::string> page(const node::TelemetryListing& before,
                                const node::TelemetryListing& now, std::size_t rows) const;
  void draw(const Terminal& terminal, const node::TelemetryListing& before,
            const node::TelemetryListing& now) const;

  node::TelemetryQuery query_;
  std::uint64_t pid_ = 0;
  CLI::Option* pid_option_ = nullptr;
  double seconds_ = 1;
};

CLI::App* TopCommand::declare(CLI::App& program) {
  CLI::App* app = program.add_subcommand("top", "Show counters as a page; q ends it");
  pid_option_ = app->add_option("-p,--pid", pid_, "This process alone")->type_name("PID");
  app->add_option("-d,--device", query_.device, "This device alone")->type_name("NAME");
  app->add_option("-s,--seconds", seconds_, "Time between two pages")
      ->transform(as_seconds({0.1, 3'600}))
      ->capture_default_str();
  app->footer(
      "The busiest device first, with its planes and its busiest queue pairs. A line that\n"
      "begins with ! is an alarm. Where the output is no terminal, one page is printed.");
  return app;
}

// Devices by what they move. The first ones have queue pairs as room allows; of those for which
// there is none it is said how many there are.
std::vector<std::string> TopCommand::page(const node::TelemetryListing& before,
                                          const node::TelemetryListing& now,
                                          std::size_t rows) const {
  std::vector<std::string> lines = {fmt::format("mrc top  {}  {}  (q ends)", wall_time(),
                                                counted(now.readings.size(), "device", "devices"))};
  auto changes = stat::changes_of(before, now);
  const auto busy = [](const stat::Change& change) -> std::uint64_t {
    if (!change.now->alive) return 0;
    const core::QpCounters& earlier = change.before->traffic;
    const core::QpCounters& later = change.now->body.traffic;
    return 1 + later.bytes_sent + later.bytes_received - earlier.bytes_sent -
           earlier.bytes_received;
  };
  std::ranges::stable_sort(changes,
                           [&](const auto& a, const auto& b) { return busy(a) > busy(b); });
  if (changes.empty()) lines.push_back(stat::nothing_line(query_, now));
  std::size_t shown = 0;
  for (const stat::Change& change : changes) {
    const std::size_t bare = stat::lines_of(change, 0).size();
    const std::size_t left = rows > lines.size() + 1 ? rows - lines.size() - 1 : 0;
    if (shown > 0 && bare > left) break;
    constexpr std::size_t kAround = 2;  // a heading, and how many more there are
    const std::size_t pairs = left > bare + kAround ? left - bare - kAround : 0;
    const auto more = stat::lines_of(change, shown == 0 ? pairs : 0);
    lines.insert(lines.end(), more.begin(), more.end());
    ++shown;
  }
  if (shown < changes.size())
    lines.push_back(
        fmt::format("and {} more", counted(changes.size() - shown, "device", "devices")));
  if (lines.size() > rows) lines.resize(rows);
  return lines;
}

void TopCommand::draw(const Terminal& terminal, const node::TelemetryListing& before,
                      const node::TelemetryListing& now) const {
  const Size size = screen_size();
  std::string text = "\x1b[H";
  for (std::string& line : page(before, now, size.rows - 1)) {
    line.resize(std::min(line.size(), size.columns - 1));
    const bool alarm = line.starts_with("  ! ");
    text += (alarm                   ? terminal.red(line)
             : line.starts_with(' ') ? line
                                     : terminal.bold(line)) +
            "\x1b[K\r\n";
  }
  text += "\x1b[J";
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

ExitCode TopCommand::run() {
  query_.directory = node::telemetry_directory();
  if (pid_option_->count() > 0) query_.pid = pid_;
  const Terminal terminal(stdout);
  node::TelemetryListing before = node::read_telemetry(query_);
  if (!terminal.is_tty() || ::isatty(STDIN_FILENO) == 0) {
    if (!before.readings.empty()) std::this_thread::sleep_for(kOnePage);
    const node::TelemetryListing now = node::read_telemetry(query_);
    for (const std::string& line : page(before, now, kUsualRows))
      fmt::print("{}\n", line);
    return now.readings.empty() ? ExitCode::kFailed : ExitCode::kOk;
  }
  const os::Interrupt interrupt;
  const Screen screen;
  for (bool quit = Screen::wait(kFirstPageMs); !quit && !os::Interrupt::raised();) {
    node::TelemetryListing now = node::read_telemetry(query_);
    draw(terminal, before, now);
    before = std::move(now);
    quit = Screen::wait(static_cast<int>(std::lround(seconds_ * 1'000)));
  }
  return ExitCode::kOk;
}

}  // namespace

std::unique_ptr<Command> make_top_command() { return std::make_unique<TopCommand>(); }

}  // namespace mrc::tool
