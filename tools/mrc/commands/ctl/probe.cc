#include "commands/ctl/probe.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "controller/event_queue.h"
#include "controller/words.h"
#include "fabric/input_error.h"
#include "text.h"

namespace mrc::tool::ctl {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct PortResult {
  unsigned sent = 0;
  std::vector<unsigned> rtt_ns;
};

void run_round(const controller::Session& session, const ProbeOptions& options, unsigned round,
               std::map<unsigned, PortResult>& results) {
  const controller::ProbeRound done = controller::probe_peer(session, options.probe, round);
  for (const unsigned port : done.ports)
    ++results[port].sent;
  for (const controller::ProbeAnswer& answer : done.answers) {
    results[answer.port].rtt_ns.push_back(answer.rtt_ns);
    if (!options.json) {
      fmt::print("answer from {} on port {}: {}\n", options.probe.peer, answer.port,
                 microseconds(answer.rtt_ns));
    }
  }
  std::fflush(stdout);
}

Json summary(const ProbeOptions& options, const std::map<unsigned, PortResult>& results) {
  Json ports = Json::array();
  for (const auto& [port, result] : results) {
    std::vector<unsigned> rtt = result.rtt_ns;
    std::sort(rtt.begin(), rtt.end());
    Json row = {{"port", port}, {"sent", result.sent}, {"answered", rtt.size()}};
    if (!rtt.empty()) {
      row["rtt_ns_min"] = rtt.front();
      row["rtt_ns_median"] = rtt[rtt.size() / 2];
      row["rtt_ns_max"] = rtt.back();
    }
    ports.push_back(row);
  }
  return {
      {"schema", "mrc-ctl-probe"}, {"version", 1}, {"peer", options.probe.peer}, {"ports", ports}};
}

void print_summary(const Json& document) {
  for (const Json& port : document["ports"]) {
    fmt::print("port {}: {} of {} answered", port["port"].dump(), port["answered"].dump(),
               port["sent"].dump());
    if (port.contains("rtt_ns_min")) {
      fmt::print(", {} / {} / {} (min / median / max)",
                 microseconds(port["rtt_ns_min"].get<std::int64_t>()),
                 microseconds(port["rtt_ns_median"].get<std::int64_t>()),
                 microseconds(port["rtt_ns_max"].get<std::int64_t>()));
    }
    fmt::print("\n");
  }
}

void print_event(const mrc_ctl_ev_event& event, bool json) {
  if (json) {
    const Json line = {{"profile", event.profile_id},
                       {"ev", controller::ev_text(event.ev, false)},
                       {"port", event.ev.port},
                       {"state", controller::ev_state_text(event.state)},
                       {"drop_count", event.drop_count}};
    fmt::print("{}\n", line.dump());
  } else {
    fmt::print("profile {}: EV {} is {}{}\n", event.profile_id,
               controller::ev_text(event.ev, false), controller::ev_state_text(event.state),
               controller::lost_events_text(event));
  }
  std::fflush(stdout);
}

}  // namespace

ExitCode probe(const controller::Session& session, const ProbeOptions& options) {
  if (options.probe.port > session.port_count()) {
    throw fabric::InputError(
        fmt::format("{} has ports 1 to {}", session.device(), session.port_count()));
  }
  std::map<unsigned, PortResult> results;
  for (unsigned round = 0; round < options.count; ++round) {
    if (round > 0) std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_s));
    run_round(session, options, round, results);
  }
  const Json document = summary(options, results);
  if (options.json) {
    fmt::print("{}\n", document.dump(2));
  } else {
    print_summary(document);
  }
  const bool all = std::all_of(results.begin(), results.end(), [](const auto& entry) {
    return entry.second.rtt_ns.size() == entry.second.sent;
  });
  return all ? ExitCode::kOk : ExitCode::kTimeout;
}

ExitCode watch(const controller::Session& session, const WatchOptions& options) {
  controller::EventQueue queue(session);
  const auto deadline = Clock::now() + std::chrono::duration<double>(options.seconds);
  unsigned seen = 0;
  while (options.count == 0 || seen < options.count) {
    mrc_ctl_ev_event event{};
    if (queue.next(event)) {
      print_event(event, options.json);
      ++seen;
      continue;
    }
    int timeout_ms = -1;
    if (options.seconds > 0) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (left <= 0) break;
      timeout_ms = static_cast<int>(std::min<long long>(left + 1, 60'000));
    }
    queue.wait(timeout_ms);
  }
  return ExitCode::kOk;
}

}  // namespace mrc::tool::ctl
