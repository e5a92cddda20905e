#include "commands/perf/report.h"

#include <fmt/core.h>

#include <ostream>

#include "output_file.h"

namespace mrc::tool::perf {
namespace {

constexpr double kMib = 1 << 20;
constexpr const char* kRule =
    "---------------------------------------------------------------------------------------";

const char* title_of(Test test) {
  switch (test) {
    case Test::kWriteBandwidth:
      return "RDMA_Write BW Test";
    case Test::kWriteLatency:
      return "RDMA_Write Latency Test";
    case Test::kWriteImmediate:
      return "RDMA_Write_With_Immediate BW Test";
  }
  return "";
}

std::string duration_of(const Plan& plan) {
  return plan.seconds > 0 ? fmt::format("{:g} s", plan.seconds)
                          : fmt::format("{} iterations", plan.iterations);
}

nlohmann::ordered_json waits_json(const Waits& waits) {
  nlohmann::ordered_json shares;
  for (unsigned i = 0; i < kWaits; ++i)
    shares[name_of(static_cast<Wait>(i))] = waits.share(static_cast<Wait>(i));
  const openmrc_qp_counters& sums = waits.sums;
  return {{"looks", waits.looks},
          {"waits", shares},
          {"round_trip_us_mean", waits.round_trip_us},
          {"round_trip_us_max", waits.most_round_trip_us},
          {"paths", waits.paths},
          {"paths_bad_max", waits.most_bad_paths},
          {"packets_sent", sums.packets_sent},
          {"retransmitted", sums.retransmitted},
          {"lost_by_path_order", sums.lost_by_path_order},
          {"lost_by_time", sums.lost_by_time},
          {"lost_by_timeout", sums.lost_by_timeout},
          {"trimmed", sums.trimmed},
          {"refused", sums.refused},
          {"speculative", sums.speculative},
          {"spurious", sums.spurious},
          {"marked", sums.marked},
          {"probes_sent", sums.probes_sent}};
}

}  // namespace

Report::Report(const Options& options)
    : options_(options),
      out_(options.json || options.report_every_s > 0 ? stderr : stdout),
      document_({{"schema", "mrc.perf"}, {"version", 1}, {"program", "mrc " MRC_VERSION}}) {
  document_["test"] = name_of(options.plan.test);
  document_["role"] = options.is_server() ? "server" : "client";
  document_["results"] = nlohmann::ordered_json::array();
}

void Report::waiting() {
  fmt::print(out_,
             "\n************************************\n* Waiting for client to connect... *\n"
             "************************************\n");
  std::fflush(out_);
}

void Report::begin(const Plan& plan, const Endpoint& endpoint, const std::string& peer_host) {
  plan_ = plan;
  begun_ = true;
  document_["device"] = endpoint.device_name();
  document_["peer"] = peer_host;
  document_["local_gid"] = collective::gid_text(endpoint.address().gid);
  document_["peer_gid"] = collective::gid_text(endpoint.peer().gid);
  document_["qps"] = plan.qps;
  document_["tx_depth"] = plan.depth;
  document_["mtu_bytes"] = endpoint.mtu();
  document_["both_ways"] = plan.both_ways;
  document_["qp_memory_bytes"] = endpoint.qp_memory_bytes();
  document_["memory_bytes_per_qp"] = endpoint.qp_memory_bytes() / plan.qps;
  print_banner(endpoint, peer_host);
}

void Report::print_banner(const Endpoint& endpoint, const std::string& peer_host) {
  const Address own = endpoint.address();
  const Address& peer = endpoint.peer();
  const std::string title = title_of(plan_.test);
  fmt::print(out_, "{}\n{:>{}}\n", kRule, title, 43 + title.size() / 2);
  fmt::print(out_, " Device          : {:<16} Connection type : MRC\n", endpoint.device_name());
  fmt::print(out_, " Number of qps   : {:<16} TX depth        : {}\n", plan_.qps, plan_.depth);
  fmt::print(out_, " Mtu             : {:<16} Length          : {}\n",
             fmt::format("{}[B]", endpoint.mtu()), duration_of(plan_));
  fmt::print(out_, " Data verified   : {:<16} Both ways       : {}\n", plan_.verify ? "ON" : "OFF",
             plan_.both_ways ? "ON" : "OFF");
  fmt::print(out_, "{}\n local address: QPN {:#06x} PSN {:#08x} GID {}\n", kRule, own.qps.front(),
             own.psn, collective::gid_text(own.gid));
  fmt::print(out_, " remote address: QPN {:#06x} PSN {:#08x} GID {} ({})\n", peer.qps.front(),
             peer.psn, collective::gid_text(peer.gid), peer_host);
  fmt::print(out_, "{}\n", kRule);
  const char* const unit = options_.gbits ? "Gb/sec" : "MiB/sec";
  if (plan_.test == Test::kWriteLatency) {
    fmt::print(out_,
               " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    "
               "t_avg[usec]    t_stdev[usec]   99% percentile[usec]   "
               "99.9% percentile[usec] \n");
  } else {
    fmt::print(out_, " #bytes     #iterations    BW peak[{0}]    BW average[{0}]   MsgRate[Mpps]\n",
               unit);
  }
  std::fflush(out_);
}

void Report::print_row(const Result& result) {
  if (plan_.test == Test::kWriteLatency) {
    const LatencySummary& l = result.latency;
    fmt::print(out_,
               " {:<7} {:<14} {:<14.2f} {:<12.2f} {:<16.2f} {:<14.2f} {:<15.2f} {:<22.2f} {:.2f}\n",
               result.message_bytes, result.messages, l.min / 1e3, l.max / 1e3, l.median / 1e3,
               l.mean / 1e3, l.deviation / 1e3, l.p99 / 1e3, l.p999 / 1e3);
  } else {
    const double unit = options_.gbits ? 1e9 : 8 * kMib;
    const double average = result.bits_per_second() + result.peer_bits_per_second;
    fmt::print(out_, " {:<10} {:<14} {:<18.2f} {:<20.2f} {:.6f}\n", result.message_bytes,
               result.messages, (result.peak_bits_per_second + result.peer_bits_per_second) / unit,
               average / unit, average / (8e6 * static_cast<double>(result.message_bytes)));
  }
  std::fflush(out_);
}

// What a sender waited for, and what it sent again.
void Report::print_waits(const Waits& waits) {
  fmt::print(out_, " what the sender waited for, in {} looks:\n", waits.looks);
  for (unsigned i = 0; i < kWaits; ++i) {
    const auto wait = static_cast<Wait>(i);
    fmt::print(out_, "   {:<36}{:>6.1f} %\n", describe(wait), 100 * waits.share(wait));
  }
  fmt::print(out_, " round trip {:.0f} us on average, {:.0f} at most; {} of {} paths bad at most\n",
             waits.round_trip_us, waits.most_round_trip_us, waits.most_bad_paths, waits.paths);
  const openmrc_qp_counters& sums = waits.sums;
  fmt::print(
      out_,
      " sent again {} of {} packets: lost by path order {}, by time {}, by timeout {}; trimmed "
      "{}, refused {}, speculative {}; not needed {}\n",
      sums.retransmitted, sums.packets_sent, sums.lost_by_path_order, sums.lost_by_time,
      sums.lost_by_timeout, sums.trimmed, sums.refused, sums.speculative, sums.spurious);
}

void Report::add_json(const Result& result) {
  const double gigabytes = static_cast<double>(result.messages * result.message_bytes) / 1e9;
  nlohmann::ordered_json row = {{"message_bytes", result.message_bytes},
                                {"messages", result.messages},
                                {"seconds", result.seconds}};
  if (plan_.test == Test::kWriteLatency) {
    const LatencySummary& l = result.latency;
    row["latency_us_min"] = l.min / 1e3;
    row["latency_us_max"] = l.max / 1e3;
    row["latency_us_median"] = l.median / 1e3;
    row["latency_us_mean"] = l.mean / 1e3;
    row["latency_us_stdev"] = l.deviation / 1e3;
    row["latency_us_p99"] = l.p99 / 1e3;
    row["latency_us_p999"] = l.p999 / 1e3;
  } else {
    row["bandwidth_gbps"] = (result.bits_per_second() + result.peer_bits_per_second) / 1e9;
    row["bandwidth_peak_gbps"] = (result.peak_bits_per_second + result.peer_bits_per_second) / 1e9;
    row["message_rate_mpps"] = result.messages_per_second() / 1e6;
    row["cpu_s_per_gb"] = gigabytes > 0 ? (result.cpu_s + result.peer_cpu_s) / gigabytes : 0;
  }
  row["cpu_s"] = result.cpu_s;
  row["peer_cpu_s"] = result.peer_cpu_s;
  row["verified"] = result.verified;
  row["interrupted"] = result.interrupted;
  if (result.waits) row["explain"] = waits_json(*result.waits);
  document_["results"].push_back(row);
}

void Report::interval(const Interval& interval, std::uint64_t message_bytes) {
  const double seconds = interval.end_s - interval.start_s;
  const double bits = 8.0 * static_cast<double>(interval.messages * message_bytes);
  const nlohmann::ordered_json line = {
      {"schema", "mrc.perf.interval"},  {"version", 1},
      {"message_bytes", message_bytes}, {"start_s", interval.start_s},
      {"end_s", interval.end_s},        {"clock_s", interval.clock_s},
      {"messages", interval.messages},  {"bandwidth_gbps", bits / seconds / 1e9}};
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

void Report::add(const Result& result) {
  print_row(result);
  if (result.waits) print_waits(*result.waits);
  add_json(result);
}

void Report::data_wrong(const std::string& what) { document_["data_wrong"] = what; }

void Report::end(const std::string& problem) {
  if (begun_) fmt::print(out_, "{}\n", kRule);
  std::fflush(out_);
  if (!problem.empty()) document_["error"] = problem;
  const bool lines = options_.report_every_s > 0;
  if (options_.json || lines) {
    fmt::print("{}\n", document_.dump(lines ? -1 : 2));
    std::fflush(stdout);
  }
  if (options_.json_file.empty()) return;
  write_file(options_.json_file, [this](std::ostream& file) { file << document_.dump(2) << '\n'; });
}

}  // namespace mrc::tool::perf
