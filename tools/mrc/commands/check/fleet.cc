#include "commands/check/fleet.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <list>
#include <memory>
#include <set>
#include <utility>

#include "commands/check/remote_task.h"
#include "failure.h"
#include "os/interrupt.h"
#include "terminal.h"

namespace mrc::tool::check {
namespace {

constexpr int kPollMs = 50;

using Tasks = std::list<std::unique_ptr<Task>>;

class Runner {
 public:
  Runner(unsigned parallel, const char* what)
      : parallel_(parallel), terminal_(stderr), progress_(terminal_, what) {}

  // False after Ctrl-C.
  bool run(Tasks waiting) {
    const std::size_t all = waiting.size();
    while (!waiting.empty() || !running_.empty()) {
      start_some(waiting);
      wait();
      for (auto at = running_.begin(); at != running_.end();) {
        if (!step(**at)) {
          ++at;
          continue;
        }
        release(**at);
        at = running_.erase(at);
        ++done_;
      }
      if (os::Interrupt::raised()) return false;
      progress_.update(static_cast<double>(done_) / static_cast<double>(all),
                       fmt::format("{} of {}", done_, all));
    }
    return true;
  }

 private:
  // What can be started now: a host does one thing at a time, so that no transfer is disturbed.
  void start_some(Tasks& waiting) {
    for (auto at = waiting.begin(); at != waiting.end() && processes_ < parallel_;) {
      const std::vector<std::size_t> hosts = (*at)->hosts();
      const bool room = processes_ == 0 || processes_ + hosts.size() <= parallel_;
      const auto is_busy = [this](std::size_t host) { return busy_.contains(host); };
      if (!room || std::ranges::any_of(hosts, is_busy)) {
        ++at;
        continue;
      }
      busy_.insert(hosts.begin(), hosts.end());
      processes_ += hosts.size();
      try {
        (*at)->start();
        running_.push_back(std::move(*at));
      } catch (const Failure& failure) {
        (*at)->fail(failure.what());
        release(**at);
        ++done_;
      }
      at = waiting.erase(at);
    }
  }

  static bool step(Task& task) {
    try {
      return task.step();
    } catch (const Failure& failure) {
      task.fail(failure.what());
      return true;
    }
  }

  void release(const Task& task) {
    for (const std::size_t host : task.hosts()) {
      busy_.erase(host);
      --processes_;
    }
  }

  void wait() {
    std::vector<pollfd> list;
    for (const auto& task : running_)
      task->add_descriptors(list);
    ::poll(list.data(), list.size(), kPollMs);
  }

  unsigned parallel_;
  Terminal terminal_;
  Progress progress_;
  Tasks running_;
  std::set<std::size_t> busy_;
  std::size_t processes_ = 0;
  std::size_t done_ = 0;
};

// Around the ring of those that can; two of them are one pair, as transfers go both ways.
std::vector<PairReport> pairs_of(const std::vector<HostReport>& hosts) {
  std::vector<std::size_t> sound;
  for (std::size_t i = 0; i < hosts.size(); ++i)
    if (hosts[i].is_sound()) sound.push_back(i);
  const std::size_t count = sound.size() == 2 ? 1 : sound.size() < 2 ? 0 : sound.size();
  std::vector<PairReport> pairs;
  for (std::size_t i = 0; i < count; ++i)
    pairs.push_back({.client = sound[i], .server = sound[(i + 1) % sound.size()]});
  return pairs;
}

}  // namespace

bool HostReport::is_sound() const {
  return answered && std::ranges::none_of(findings, [](const doctor::Finding& finding) {
           return finding.verdict == doctor::Verdict::kBroken;
         });
}

FleetReport check_fleet(const FleetOptions& options) {
  FleetReport report;
  for (const Host& host : options.hosts)
    report.hosts.push_back({.host = host});
  Tasks tasks;
  for (std::size_t i = 0; i < report.hosts.size(); ++i)
    tasks.push_back(make_host_task(options, i, report));
  report.interrupted = !Runner(options.parallel, "looking at hosts").run(std::move(tasks));
  if (report.interrupted || options.transfer.seconds <= 0) return report;
  report.pairs = pairs_of(report.hosts);
  Tasks pairs;
  for (std::size_t i = 0; i < report.pairs.size(); ++i)
    pairs.push_back(make_pair_task(options, i, report));
  report.interrupted = !Runner(options.parallel, "looking at pairs").run(std::move(pairs));
  return report;
}

}  // namespace mrc::tool::check
