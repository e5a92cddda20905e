#include "commands/twin/report.h"

#include <fmt/core.h>

#include <algorithm>

#include "json_writer.h"
#include "sim/report.h"
#include "text.h"

namespace mrc::tool::twin {
namespace {

constexpr double kClose = 0.1;
constexpr double kOrder = 10;
constexpr double kFewRepeats = 0.001;  // of the data packets

sim::Distribution completions(const Side& side) {
  std::vector<double> ms;
  for (const double each : side.completion_ms)
    if (each >= 0) ms.push_back(each);
  return sim::distribution(std::move(ms));
}

double over(double a, double b) { return b > 0 ? a / b : 0; }

std::uint64_t count_of(const Side& side, const char* name) {
  const auto found = side.counts.find(name);
  return found == side.counts.end() ? 0 : found->second;
}

double repeats_of(const Side& side) {
  return over(static_cast<double>(count_of(side, "retransmits")),
              static_cast<double>(count_of(side, "data_packets")));
}

bool same_order(double a, double b) {
  const double most = std::max({a, b, kFewRepeats});
  const double least = std::max(std::min(a, b), kFewRepeats);
  return most / least <= kOrder;
}

void write_side(JsonWriter& json, const char* key, const Side& side) {
  const sim::Distribution d = completions(side);
  json.begin_object(key);
  json.value("finished", side.complete);
  json.value("bytes_wrong", side.bytes_wrong);
  json.begin_object("completion_ms");
  json.value("mean", d.mean);
  json.value("p50", d.p50);
  json.value("p99", d.p99);
  json.value("max", d.max);
  json.end_object();
  json.value("finish_ms", side.finish_ms);
  for (const char* name : kCounts)
    json.value(name, count_of(side, name));
  if (side.recovery_ms >= 0) {
    json.value("recovery_ms", side.recovery_ms);
  } else {
    json.null("recovery_ms");
  }
  json.begin_array("over_time");
  for (const Point& p : side.points) {
    json.begin_object();
    json.value("at_ms", p.at_ms);
    json.value("goodput_mbps", p.goodput_mbps);
    json.value("bad_paths", p.bad_paths);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

void row(const Terminal& out, const std::string& label, const std::string& lab,
         const std::string& simulator, const std::string& ratio = {}) {
  fmt::print(out.stream(), "  {:<24}{:>16}{:>16}{:>10}\n", label, lab, simulator, ratio);
}

void row_ms(const Terminal& out, const char* label, double lab, double simulator) {
  const auto ms = [](double value) { return value < 0 ? "-" : fmt::format("{:.1f} ms", value); };
  row(out, label, ms(lab), ms(simulator),
      lab > 0 && simulator > 0 ? fmt::format("{:.3f}", lab / simulator) : "");
}

std::string goodput_line(const Side& side, double full) {
  std::vector<double> values;
  for (const Point& p : side.points)
    values.push_back(p.goodput_mbps);
  return spark_line(values, full);
}

}  // namespace

Agreement compare(const Side& lab, const Side& simulator) {
  const sim::Distribution a = completions(lab);
  const sim::Distribution b = completions(simulator);
  Agreement agreement{.median_completion = over(a.p50, b.p50),
                      .last_completion = over(a.max, b.max),
                      .finish = over(lab.finish_ms, simulator.finish_ms)};
  agreement.within_10_percent =
      agreement.median_completion >= 1 - kClose && agreement.median_completion <= 1 + kClose;
  agreement.same_order_of_repeats = same_order(repeats_of(lab), repeats_of(simulator));
  return agreement;
}

void print_text(const Scenario& scenario, const Twin& twin, const Terminal& out) {
  const fabric::TopologySpec& t = scenario.config.topology;
  fmt::print(out.stream(), "{}  {}: {} on {} hosts, {} x {:g} Mb/s, {} T0 x {} T1, seed {}\n",
             out.bold("mrc twin"), scenario.path, scenario.config.workload.name, t.hosts,
             counted(t.planes, "plane", "planes"),
             static_cast<double>(t.host_link.bits_per_second) / 1e6, t.t0, t.t1,
             scenario.config.seed);
  for (const std::string& fault : scenario.config.faults)
    fmt::print(out.stream(), "  {} {}\n", out.yellow("fault"), fault);
  fmt::print(
      out.stream(),
      "  idle round trip in the lab {:.0f} us, {:.0f} us of it in hosts; packets of {} bytes\n",
      twin.traits.idle_rtt_us, twin.traits.in_hosts_us, twin.traits.mtu);
  const sim::Distribution lab = completions(twin.lab);
  const sim::Distribution simulator = completions(twin.simulator);
  row(out, "", "lab", "simulator", "ratio");
  row_ms(out, "completion, median", lab.p50, simulator.p50);
  row_ms(out, "completion, mean", lab.mean, simulator.mean);
  row_ms(out, "completion, last", lab.max, simulator.max);
  row_ms(out, "finish", twin.lab.finish_ms, twin.simulator.finish_ms);
  for (const char* name : kCounts)
    row(out, name, grouped(count_of(twin.lab, name)), grouped(count_of(twin.simulator, name)));
  row_ms(out, "last data to a dead link", twin.lab.recovery_ms, twin.simulator.recovery_ms);
  double full = 0;
  for (const Side* side : {&twin.lab, &twin.simulator})
    for (const Point& p : side->points)
      full = std::max(full, p.goodput_mbps);
  fmt::print(out.stream(), "  goodput, lab       {}  full block {:.0f} Mb/s\n",
             goodput_line(twin.lab, full), full);
  fmt::print(out.stream(), "  goodput, simulator {}\n", goodput_line(twin.simulator, full));
  const Agreement agreement = compare(twin.lab, twin.simulator);
  const auto verdict = [&](bool good) { return good ? out.green("yes") : out.red("no"); };
  fmt::print(out.stream(), "  median within 10 %: {}; retransmissions of one order: {}\n",
             verdict(agreement.within_10_percent), verdict(agreement.same_order_of_repeats));
}

void print_json(const Scenario& scenario, const Twin& twin) {
  JsonWriter json(stdout);
  json.begin_object();
  json.value("schema", "mrc.twin/1");
  json.value("scenario", scenario.path);
  json.value("workload", scenario.config.workload.name);
  json.value("seed", scenario.config.seed);
  json.value("hosts", scenario.config.topology.hosts);
  json.value("idle_rtt_us", twin.traits.idle_rtt_us);
  json.value("in_hosts_us", twin.traits.in_hosts_us);
  json.value("mtu", twin.traits.mtu);
  write_side(json, "lab", twin.lab);
  write_side(json, "simulator", twin.simulator);
  const Agreement agreement = compare(twin.lab, twin.simulator);
  json.begin_object("lab_over_simulator");
  json.value("median_completion", agreement.median_completion);
  json.value("last_completion", agreement.last_completion);
  json.value("finish", agreement.finish);
  json.value("within_10_percent", agreement.within_10_percent);
  json.value("same_order_of_retransmits", agreement.same_order_of_repeats);
  json.end_object();
  json.end_object();
}

}  // namespace mrc::tool::twin
