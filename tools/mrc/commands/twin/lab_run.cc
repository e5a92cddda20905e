#include "commands/twin/lab_run.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "failure.h"
#include "launch/lab_process.h"
#include "launch/lab_status.h"
#include "launch/rank_group.h"
#include "os/clock.h"
#include "os/interrupt.h"

namespace mrc::tool::twin {
namespace {

using nlohmann::json;

constexpr int kPollMs = 20;
constexpr double kPatienceS = 90;  // beyond the end of the scenario

double to_ms(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }

lab::ClusterOptions cluster_of(const Scenario& scenario) {
  lab::ClusterOptions options;
  options.topology = scenario.config.topology;
  options.network.shares = scenario.config.queue_shares;
  options.network.trims = scenario.config.trimming;
  options.network.seed = scenario.config.seed;
  return options;
}

// What the ranks said.
class Words {
 public:
  explicit Words(unsigned hosts) : results_(hosts) {}

  void take(unsigned rank, const std::string& line) {
    const json word = json::parse(line, nullptr, false);
    if (!word.is_object()) throw Failure(fmt::format("host {} speaks in tongues", rank));
    if (word.contains("start_ns"))
      start_ = word;
    else
      results_[rank] = word;
  }
  bool all_here() const {
    return std::none_of(results_.begin(), results_.end(),
                        [](const json& r) { return r.is_null(); });
  }
  bool started() const { return !start_.is_null(); }
  std::int64_t start_ns() const { return start_.at("start_ns").get<std::int64_t>(); }
  LabTraits traits() const {
    return {.mtu = start_.at("mtu").get<std::uint32_t>(),
            .idle_rtt_us = start_.at("idle_rtt_us").get<double>(),
            .in_hosts_us = start_.at("in_hosts_us").get<double>()};
  }
  Side side(const Scenario& scenario) const;

 private:
  void add_points(Side& side) const;

  json start_;
  std::vector<json> results_;
};

Side Words::side(const Scenario& scenario) const {
  Side side;
  side.complete = true;
  side.completion_ms.assign(scenario.workload.tasks.size(), -1);
  for (const json& result : results_) {
    side.complete = side.complete && result.at("done").get<bool>();
    side.bytes_wrong += result.at("wrong").get<std::uint64_t>();
    for (const json& flow : result.at("flows")) {
      const auto posted = flow.at(1).get<std::int64_t>();
      const auto sent = flow.at(2).get<std::int64_t>();
      if (sent < 0) continue;
      side.completion_ms.at(flow.at(0).get<std::size_t>()) = to_ms(sent - posted);
      side.finish_ms = std::max(side.finish_ms, to_ms(sent));
    }
    for (const auto& [name, value] : result.at("counters").items())
      side.counts[name] += value.get<std::uint64_t>();
  }
  add_points(side);
  return side;
}

// Each host looked at moments of its own; between two of them its bytes came evenly.
void Words::add_points(Side& side) const {
  const auto bytes_by = [](const json& points, double at_ms) {
    double before_ms = 0;
    double before = 0;
    for (const json& p : points) {
      const double ms = to_ms(p.at(0).get<std::int64_t>());
      const auto bytes = p.at(1).get<double>();
      if (ms >= at_ms && ms > before_ms)
        return before + (bytes - before) * (at_ms - before_ms) / (ms - before_ms);
      before_ms = ms;
      before = bytes;
    }
    return before;
  };
  double last = 0;
  for (unsigned i = 1; i <= kPoints; ++i) {
    Point point{.at_ms = side.finish_ms * i / kPoints};
    double bytes = 0;
    for (const json& result : results_) {
      bytes += bytes_by(result.at("points"), point.at_ms);
      for (const json& p : result.at("points")) {
        if (to_ms(p.at(0).get<std::int64_t>()) < point.at_ms) continue;
        point.bad_paths += p.at(2).get<std::uint32_t>();
        break;
      }
    }
    point.goodput_mbps = (bytes - last) * 8 / 1e3 / (side.finish_ms / kPoints);
    last = bytes;
    side.points.push_back(point);
  }
}

void add_network(const LabStatus& before, const LabStatus& after, Side& side) {
  for (std::size_t i = 0; i < after.planes.size(); ++i) {
    const LabStatus::Plane old = i < before.planes.size() ? before.planes[i] : LabStatus::Plane{};
    side.counts["marks"] += after.planes[i].marked - old.marked;
    side.counts["trims"] += after.planes[i].trimmed - old.trimmed;
    side.counts["drops"] += after.planes[i].dropped - old.dropped;
  }
  side.recovery_ms = after.offered_after_ms;
}

void break_things(const Scenario& scenario, lab::ControlClient& control) {
  for (const std::string& fault : scenario.config.faults) {
    const lab::Reply reply = control.ask({"fault", fault});
    if (!reply.ok) throw Failure(reply.text);
  }
}

}  // namespace

LabResult run_in_lab(const Scenario& scenario, const Terminal& terminal) {
  LabProcess lab(fmt::format("twin-{}", ::getpid()), cluster_of(scenario));
  RankGroupOptions options;
  options.hosts.resize(scenario.config.topology.hosts);
  std::iota(options.hosts.begin(), options.hosts.end(), 0U);
  options.command = {own_program(), "twin", scenario.path, "--as-host"};
  RankGroup ranks(lab.directory(), options);
  Words words(scenario.config.topology.hosts);
  Progress progress(terminal, "lab");
  const double limit_s = static_cast<double>(scenario.config.end_ps) / 1e12 + kPatienceS;
  LabStatus before;
  LabStatus after;
  bool broken = false;
  bool counted = false;
  while (ranks.running()) {
    ranks.poll(kPollMs, [&](unsigned rank, const std::string& line) { words.take(rank, line); });
    if (os::Interrupt::raised()) throw Failure("interrupted", FailureKind::kInterrupted);
    if (progress.seconds() > limit_s)
      throw Failure("the lab does not come to an end", FailureKind::kTimeout);
    progress.update(std::min(0.99, progress.seconds() / limit_s));
    if (words.started() && !broken) {
      // What connecting and measuring the idle lab took is no part of the scenario.
      before = ask_status(lab.control());
      const std::int64_t left_ns = words.start_ns() - os::monotonic_now();
      if (left_ns > 0) ::usleep(static_cast<useconds_t>(left_ns / 1'000));
      break_things(scenario, lab.control());
      broken = true;
    }
    if (words.all_here() && !counted) {
      after = ask_status(lab.control());
      counted = true;
    }
  }
  if (ranks.result() != 0)
    throw Failure(ranks.complaint(), static_cast<FailureKind>(ranks.result()));
  if (!counted) after = ask_status(lab.control());
  if (!words.started() || !words.all_here()) throw Failure("a host ended without a result");
  try {
    LabResult result{.side = words.side(scenario), .traits = words.traits()};
    add_network(before, after, result.side);
    return result;
  } catch (const json::exception& error) {
    throw Failure(fmt::format("a host does not keep to the protocol: {}", error.what()));
  }
}

}  // namespace mrc::tool::twin
