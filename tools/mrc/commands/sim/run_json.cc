#include <fmt/core.h>

#include <algorithm>

#include "commands/sim/run.h"
#include "json_writer.h"

namespace mrc::tool::simulator {
namespace {

void write_distribution(JsonWriter& json, const char* key, const sim::Distribution& d) {
  json.begin_object(key);
  json.value("mean", d.mean);
  json.value("p50", d.p50);
  json.value("p99", d.p99);
  json.value("max", d.max);
  json.end_object();
}

void write_topology(JsonWriter& json, const fabric::TopologySpec& t) {
  json.begin_object("topology");
  json.value("planes", t.planes);
  json.value("hosts", t.hosts);
  json.value("t0", t.t0);
  json.value("t1", t.t1);
  if (t.cables > 1) json.value("cables", t.cables);
  if (t.t2 > 0) {
    json.value("pods", t.pods);
    json.value("t2", t.t2);
  }
  json.value("gbps", static_cast<double>(t.host_link.bits_per_second) / 1e9);
  json.value("uplink_gbps", static_cast<double>(t.t0_t1_link.bits_per_second) / 1e9);
  json.value("delay_us", static_cast<double>(t.host_link.delay_ps) / 1e6);
  json.end_object();
}

void write_slowdown(JsonWriter& json, const sim::Report& r) {
  if (r.slowdown.empty()) return;
  json.begin_object("slowdown");
  for (const sim::SlowdownClass& c : r.slowdown) {
    json.begin_object(c.up_to_bytes > 0 ? fmt::format("to_{}kB", c.up_to_bytes / 1'000) : "longer");
    json.value("flows", c.flows);
    json.value("mean", c.mean);
    json.value("p50", c.p50);
    json.value("p99", c.p99);
    json.value("max", c.max);
    json.end_object();
  }
  json.end_object();
}

void write_times(JsonWriter& json, const sim::Report& r) {
  json.value("flows", r.flows);
  json.value("completed", r.result.completed);
  json.value("failed", r.result.failed);
  json.value("finished", r.result.complete);
  json.value("bytes", r.bytes);
  write_distribution(json, "fct_us", r.fct_us);
  json.value("ideal_us", r.ideal_us);
  json.value("ratio_max", r.ratio_max);
  json.value("bound_us", r.bound_us);
  json.value("bound_by", r.bound_reason);
  json.value("ratio_bound", r.ratio_bound);
  json.value("finish_us", r.finish_us);
  json.value("goodput_gbps", r.goodput_gbps);
  if (r.victim) {
    json.begin_object("victim");
    json.value("fct_us", r.victim->fct_us);
    json.value("alone_us", r.victim->alone_us);
    json.value("ratio", r.victim->ratio);
    json.end_object();
  }
  if (r.fairness) {
    const sim::FairnessReport& f = *r.fairness;
    json.begin_object("fairness");
    json.value("from_us", f.from_us);
    json.value("until_us", f.until_us);
    json.value("jain", f.jain);
    json.value("jain_worst", f.jain_worst);
    json.value("share_min", *std::min_element(f.share.begin(), f.share.end()));
    json.value("share_max", *std::max_element(f.share.begin(), f.share.end()));
    json.array("share", f.share);
    json.begin_array("shares_over_time");
    for (const std::vector<double>& slice : f.slices)
      json.array({}, slice);
    json.end_array();
    json.end_object();
  }
  write_slowdown(json, r);
  if (r.collective) {
    json.value("algorithm_gbps", r.collective->algorithm_gbps);
    json.value("bus_gbps", r.collective->bus_gbps);
  }
  if (r.result.step_us.empty()) return;
  write_distribution(json, "step_us", sim::distribution(r.result.step_us));
  json.array("steps_us", r.result.step_us);
}

void write_counters(JsonWriter& json, const sim::SimResult& r) {
  json.value("data_packets", r.hosts.data_packets);
  json.value("control_packets", r.hosts.control_packets);
  json.value("retransmits", r.hosts.retransmits);
  json.value("spurious", r.hosts.spurious);
  json.value("hedged", r.hosts.hedged);
  json.value("timeouts", r.hosts.timeouts);
  json.value("probes", r.hosts.probes);
  json.value("trims", r.network.trims);
  json.value("marks", r.network.marks);
  json.value("pauses", r.network.pauses);
  json.value("corrupted", r.network.corrupted);
  json.value("drops", r.network.drops());
  json.begin_object("drops_by_cause");
  json.value("queue_full", r.network.dropped_full);
  json.value("link_down", r.network.dropped_down);
  json.value("loss", r.network.dropped_loss);
  json.value("no_route", r.network.dropped_no_route);
  json.end_object();
  json.value("bytes_wrong", r.bytes_wrong);
}

void write_faults(JsonWriter& json, const sim::Report& r) {
  if (r.faults.empty()) return;
  json.array("faults", r.faults);
  if (r.has_down_fault) {
    // No packet at all on a dead path is the best there is.
    json.value("recovery_us", std::max(0.0, r.result.recovery_us));
  } else {
    json.null("recovery_us");
  }
  const sim::Dip& dip = r.result.dip;
  if (!dip.valid) return json.null("dip");
  json.begin_object("dip");
  json.value("depth", dip.depth);
  json.value("length_us", dip.length_us);
  json.value("before_gbps", dip.before_gbps);
  json.value("lowest_gbps", dip.lowest_gbps);
  if (dip.back_to_75_us >= 0) {
    json.value("back_to_75_us", dip.back_to_75_us);
  } else {
    json.null("back_to_75_us");
  }
  json.end_object();
}

void write_explanations(JsonWriter& json, const Run& run) {
  if (run.explanations.empty()) return;
  json.begin_array("explain");
  for (const sim::Explanation& e : run.explanations) {
    const sim::Task& task = run.workload.tasks[e.task];
    json.begin_object();
    json.value("source", task.source);
    json.value("destination", task.destination);
    json.value("bytes", task.bytes);
    json.value("posted_us", static_cast<double>(run.report.result.flows[e.task].posted) / 1e6);
    json.value("us", e.us);
    json.begin_object("parts_us");
    for (std::size_t i = 0; i < sim::kTimeParts; ++i)
      json.value(name_of(static_cast<sim::TimePart>(i)), e.part_us[i]);
    json.end_object();
    json.value("packets", e.packets);
    json.value("copies", e.copies);
    json.begin_object("copies_not_placed");
    for (std::size_t i = 0; i < sim::kTimeParts; ++i)
      if (e.lost[i] > 0) json.value(name_of(static_cast<sim::TimePart>(i)), e.lost[i]);
    json.end_object();
    json.end_object();
  }
  json.end_array();
}

}  // namespace

void write_run(JsonWriter& json, const Run& run) {
  const sim::Report& r = run.report;
  json.begin_object();
  json.value("schema", "mrc.sim/1");
  json.value("transport", sim::transport_name(r.config.transport));
  json.value("workload", r.config.workload.name);
  json.value("seed", r.config.seed);
  write_topology(json, r.config.topology);
  write_times(json, r);
  write_counters(json, r.result);
  write_faults(json, r);
  write_explanations(json, run);
  json.value("events", r.result.events);
  json.value("packet_hops", r.result.network.packet_hops);
  json.value("setup_s", run.setup_s);
  json.value("wall_s", run.wall_s);
  json.value("packet_hops_per_s",
             run.wall_s > 0 ? static_cast<double>(r.result.network.packet_hops) / run.wall_s : 0.0);
  json.value("peak_rss_bytes", run.peak_rss_bytes);
  json.value("trace_hash", fmt::format("{:016x}", r.result.trace_hash));
  json.end_object();
}

void print_json(const std::vector<Run>& runs) {
  JsonWriter json(stdout);
  if (runs.size() == 1) return write_run(json, runs.front());
  json.begin_object();
  json.value("schema", "mrc.sim.compare/1");
  json.begin_array("runs");
  for (const Run& run : runs)
    write_run(json, run);
  json.end_array();
  json.end_object();
}

}  // namespace mrc::tool::simulator
