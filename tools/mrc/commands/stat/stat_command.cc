// mrc stat: what the processes of this host that use MRC are doing, as numbers.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>

#include "command.h"
#include "commands/stat/device_report.h"
#include "os/interrupt.h"
#include "quantity_option.h"
#include "text.h"

namespace mrc::tool {
namespace {

class StatCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  ExitCode clean() const;
  ExitCode watch();
  ExitCode look_once();
  // Whether there was anything.
  bool show(const node::TelemetryListing& before, const node::TelemetryListing& now,
            bool is_short) const;

  node::TelemetryQuery query_;
  std::uint64_t pid_ = 0;
  CLI::Option* pid_option_ = nullptr;
  CLI::Option* watch_option_ = nullptr;
  double seconds_ = 1;
  std::uint64_t count_ = 0;
  std::size_t queue_pairs_ = 8;
  bool json_ = false;
  bool clean_ = false;
  bool at_once_ = false;
};

constexpr std::chrono::milliseconds kStep{50};
// Pages of processes that move nothing are written once a second.
constexpr std::chrono::milliseconds kLook{1'100};

using Clock = std::chrono::steady_clock;

void wait_until(Clock::time_point when) {
  while (!os::Interrupt::raised() && Clock::now() < when)
    std::this_thread::sleep_for(kStep);
}

CLI::App* StatCommand::declare(CLI::App& program) {
  CLI::App* app = program.add_subcommand("stat", "Show counters of running processes");
  pid_option_ = app->add_option("-p,--pid", pid_, "This process alone")->type_name("PID");
  app->add_option("-d,--device", query_.device, "This device alone")->type_name("NAME");
  watch_option_ = app->add_option("-w,--watch", seconds_,
                                  "Print again every so many seconds, with the rates in between")
                      ->type_name("TIME")
                      ->expected(0, 1)
                      ->default_str("1")
                      ->transform(as_seconds({0.1, 3'600}));
  app->add_option("-n,--count", count_, "End --watch after so many times")->type_name("N");
  app->add_option("-q,--queue-pairs", queue_pairs_, "Queue pairs to list, the busiest first")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  app->add_flag("--json", json_, "Print one JSON object, a line each with --watch");
  app->add_flag("--at-once", at_once_, "Do not wait for a second: rates since the process started");
  app->add_flag("--clean", clean_, "Remove what processes that were killed have left behind");
  app->footer(
      "Rates are those of about a second, with --watch those between two lines; the line of a\n"
      "device says of what time.\n"
      "A line that begins with ! is an alarm. docs/metrics.md says what is counted.");
  return app;
}

ExitCode StatCommand::clean() const {
  const unsigned removed = node::clean_all_telemetry(query_.directory);
  fmt::print("removed {} that nobody writes\n", counted(removed, "page", "pages"));
  return ExitCode::kOk;
}

bool StatCommand::show(const node::TelemetryListing& before, const node::TelemetryListing& now,
                       bool is_short) const {
  auto changes = stat::changes_of(before, now);
  for (stat::Change& change : changes)
    change.is_short = is_short;
  std::ranges::stable_sort(changes, std::greater<>(),
                           [](const stat::Change& change) { return change.now->alive; });
  if (json_) {
    nlohmann::ordered_json devices = nlohmann::ordered_json::array();
    for (const stat::Change& change : changes)
      devices.push_back(stat::describe(change));
    const nlohmann::ordered_json document = {{"schema", "mrc.stat"},
                                             {"version", 2},
                                             {"devices", devices},
                                             {"problems", now.problems},
                                             {"closed_folders", now.closed_folders}};
    fmt::print("{}\n", document.dump(watch_option_->count() > 0 ? -1 : 2));
  } else {
    for (const stat::Change& change : changes) {
      for (const std::string& line : stat::lines_of(change, queue_pairs_))
        fmt::print("{}\n", line);
    }
    for (const std::string& problem : now.problems)
      fmt::print(stderr, "mrc stat: {}\n", problem);
  }
  if (changes.empty()) fmt::print(stderr, "mrc stat: {}\n", stat::nothing_line(query_, now));
  std::fflush(stdout);
  return !changes.empty();
}

ExitCode StatCommand::watch() {
  const os::Interrupt interrupt;
  node::TelemetryListing before;
  bool any = false;
  for (std::uint64_t shown = 0; count_ == 0 || shown < count_; ++shown) {
    const auto next = Clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                         std::chrono::duration<double>(seconds_));
    node::TelemetryListing now = node::read_telemetry(query_);
    if (!json_) fmt::print("--- {}\n", wall_time());
    any = show(before, now, false) || any;
    before = std::move(now);
    if (shown + 1 == count_) break;
    wait_until(next);
    if (os::Interrupt::raised()) return ExitCode::kInterrupted;
  }
  return any ? ExitCode::kOk : ExitCode::kFailed;
}

ExitCode StatCommand::look_once() {
  const os::Interrupt interrupt;
  node::TelemetryListing before;
  node::TelemetryListing now = node::read_telemetry(query_);
  const bool waits = !at_once_ && std::ranges::any_of(now.readings, &node::TelemetryReading::alive);
  if (waits) {
    wait_until(Clock::now() + kLook);
    if (os::Interrupt::raised()) return ExitCode::kInterrupted;
    before = std::exchange(now, node::read_telemetry(query_));
  }
  return show(before, now, waits) ? ExitCode::kOk : ExitCode::kFailed;
}

ExitCode StatCommand::run() {
  query_.directory = node::telemetry_directory();
  if (pid_option_->count() > 0) query_.pid = pid_;
  if (clean_) return clean();
  if (watch_option_->count() > 0) return watch();
  return look_once();
}

}  // namespace

std::unique_ptr<Command> make_stat_command() { return std::make_unique<StatCommand>(); }

}  // namespace mrc::tool
