#include "ctl/probe.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "ctl/event_queue.h"
#include "ctl/words.h"
#include "errno_of.h"
#include "fabric/input_error.h"
#include "text.h"

namespace mrc::tool::ctl {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kFirstEntropy = 0xC350;  // in the range of ephemeral source ports
constexpr double kMaxTimeoutNs = std::numeric_limits<std::uint32_t>::max();

struct PortResult {
  unsigned sent = 0;
  std::vector<unsigned> rtt_ns;
};

mrc_ctl_ev path_of(unsigned port, unsigned round) {
  mrc_ctl_ev ev{};
  const std::uint32_t entropy = kFirstEntropy + round % 1'000 * 16 + port;
  ev.val[2] = static_cast<std::uint8_t>(entropy >> 8);
  ev.val[3] = static_cast<std::uint8_t>(entropy & 0xFF);
  ev.port = static_cast<std::uint8_t>(port);
  return ev;
}

std::vector<mrc_ctl_ep_req> make_round(const Session& session, const ProbeOptions& options,
                                       unsigned round) {
  mrc_ctl_ep_req request{};
  request.sgid = session.gid();
  request.dgid = parse_gid(options.peer);
  request.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_STEV;
  std::vector<mrc_ctl_ep_req> requests;
  if (!options.ev.empty()) {
    request.req_ev = parse_ev(options.ev);
    if (options.ev.find(':', options.ev.find(':') + 1) != std::string::npos)
      request.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_SRV6;
    requests.push_back(request);
    return requests;
  }
  for (unsigned port = 1; port <= session.port_count(); ++port) {
    if (options.port != 0 && options.port != port) continue;
    request.req_ev = path_of(port, round);
    request.req_id = static_cast<std::uint16_t>(port);
    requests.push_back(request);
  }
  return requests;
}

void run_round(const Session& session, const ProbeOptions& options, unsigned round,
               std::map<unsigned, PortResult>& results) {
  std::vector<mrc_ctl_ep_req> requests = make_round(session, options, round);
  std::vector<mrc_ctl_ep_rsp> answers(requests.size());
  for (const mrc_ctl_ep_req& request : requests)
    ++results[request.req_ev.port].sent;
  int count = 0;
  const int error = errno_of(
      mrc_ctl_ep_batch_send_wait(session.context(), 0, MRC_CTL_EP_OP_EV_PROBE, requests.data(),
                                 static_cast<int>(requests.size()),
                                 probe_timeout_ns(options.timeout_s), answers.data(), &count));
  if (error != ETIMEDOUT) session.check(error, "probe of " + options.peer);
  for (int i = 0; i < count; ++i) {
    const mrc_ctl_ep_rsp& answer = answers[static_cast<std::size_t>(i)];
    results[answer.port].rtt_ns.push_back(answer.rtt);
    if (!options.json) {
      fmt::print("answer from {} on port {}: {}\n", options.peer, answer.port,
                 microseconds(answer.rtt));
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
  return {{"schema", "mrc-ctl-probe"}, {"version", 1}, {"peer", options.peer}, {"ports", ports}};
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
                       {"ev", ev_text(event.ev, false)},
                       {"port", event.ev.port},
                       {"state", ev_state_text(event.state)},
                       {"drop_count", event.drop_count}};
    fmt::print("{}\n", line.dump());
  } else {
    fmt::print("profile {}: EV {} is {}{}\n", event.profile_id, ev_text(event.ev, false),
               ev_state_text(event.state), lost_events_text(event));
  }
  std::fflush(stdout);
}

}  // namespace

std::uint32_t probe_timeout_ns(double seconds) {
  return static_cast<std::uint32_t>(std::clamp(seconds * 1e9, 0.0, kMaxTimeoutNs));
}

std::string lost_events_text(const mrc_ctl_ev_event& event) {
  if (event.drop_count == 0) return "";
  return fmt::format(", {} before it {} lost", counted(event.drop_count, "event", "events"),
                     event.drop_count == 1 ? "was" : "were");
}

ExitCode probe(const Session& session, const ProbeOptions& options) {
  if (options.port > session.port_count()) {
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

ExitCode watch(const Session& session, const WatchOptions& options) {
  EventQueue queue(session);
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
