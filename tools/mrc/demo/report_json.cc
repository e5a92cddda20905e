#include <cstdio>

#include "demo/report.h"
#include "json_writer.h"

namespace mrc::demo {
namespace {

using tool::JsonWriter;

double microseconds(DurationNs ns) { return static_cast<double>(ns) / 1e3; }

// A moment that may not have come, relative to another.
void put_delay(JsonWriter& json, std::string_view key, TimeNs at, TimeNs since) {
  if (at == kNever) {
    json.null(key);
  } else {
    json.value(key, microseconds(at - since));
  }
}

void put_cluster(JsonWriter& json, const Report& report) {
  json.begin_object("cluster");
  json.value("hosts", report.options.hosts);
  json.value("planes", report.options.planes);
  json.value("t0_per_plane", report.leaves);
  json.value("t1_per_plane", report.spines);
  json.value("queue_pairs", report.flows);
  json.value("paths_per_queue_pair", report.paths_per_flow);
  json.value("port_bits_per_second", kPortBitsPerSecond);
  json.value("mbytes_per_host", report.options.mbytes);
  json.value("seed", report.options.seed);
  json.value("fail", fail_mode_name(report.options.fail));
  json.end_object();
}

void put_result(JsonWriter& json, const Report& report) {
  json.value("verdict", verdict_name(report.verdict));
  if (!report.failure.empty()) json.value("failure", report.failure);
  json.value("virtual_us", microseconds(report.finished_at));
  json.value("goodput_gbps", report.goodput_bits_per_second() / 1e9);
  json.value("line_rate_gbps", static_cast<double>(report.line_rate_bits_per_second()) / 1e9);
  json.value("bytes_planned", report.bytes_planned);
  json.value("bytes_moved", report.bytes_moved);
  json.value("bytes_verified", report.bytes_verified);
  json.value("wrong_bytes", report.wrong_bytes);
  json.value("early_wrong_bytes", report.early_wrong_bytes);
  json.value("messages", report.messages_planned);
  json.value("completions", report.completions);
  json.value("immediates", report.immediates);
  json.value("immediates_out_of_order", report.immediates_out_of_order);
}

void put_fault(JsonWriter& json, const FaultReport& entry) {
  const Fault& fault = entry.fault;
  json.begin_object();
  json.value("kind", fault_kind_name(fault.kind));
  json.value("what", describe(fault));
  json.value("happened", entry.observation.happened);
  json.value("at_us", microseconds(fault.at));
  if (fault.repair_at == kNever) {
    json.null("repair_at_us");
  } else {
    json.value("repair_at_us", microseconds(fault.repair_at));
  }
  json.value("plane", static_cast<std::uint64_t>(fault.plane));
  json.value("data_lost", entry.trace.data_lost);
  json.value("queue_pairs_hit", entry.trace.flows_hit);
  json.value("most_lost_by_one", entry.trace.most_lost_by_flow);
  json.value("control_lost", entry.trace.control_lost);
  json.value("probes_lost", entry.trace.probes_lost);
  json.value("bypass_us", microseconds(entry.bypass_ns()));
  json.value("longest_use_us", microseconds(entry.trace.longest_use_ns));
  json.value("reactions", entry.observation.reactions);
  put_delay(json, "first_reaction_us", entry.observation.first_reaction_at, fault.at);
  put_delay(json, "last_reaction_us", entry.observation.last_reaction_at, fault.at);
  put_delay(json, "data_again_us", entry.trace.first_data_after_at, fault.repair_at);
  json.end_object();
}

void put_traffic(JsonWriter& json, const Report& report) {
  const core::QpCounters& totals = report.totals;
  json.begin_object("packets");
  json.value("data_sent", totals.data_sent);
  json.value("retransmitted", totals.retransmitted);
  json.value("lost_by_path_order", totals.lost_by_path_order);
  json.value("lost_by_time", totals.lost_by_time);
  json.value("lost_by_timeout", totals.lost_by_timeout);
  json.value("trimmed", totals.trimmed);
  json.value("spurious", totals.spurious);
  json.value("duplicates", totals.duplicates);
  json.value("marked", totals.marked);
  json.value("timeouts", totals.timeouts);
  json.value("probes_sent", totals.probes_sent);
  json.value("sacks_sent", totals.sacks_sent);
  json.value("nacks_sent", totals.nacks_sent);
  json.value("acks_sent", totals.acks_sent);
  json.end_object();
  json.begin_object("network");
  json.value("frames", report.network.frames);
  json.value("bytes", report.network.bytes);
  json.value("marked", report.network.marked);
  json.value("trimmed", report.network.trimmed);
  json.value("overflowed", report.network.overflowed);
  json.value("unroutable", report.network.unroutable);
  json.value("unreadable", report.unreadable_frames);
  json.end_object();
}

void put_paths(JsonWriter& json, const Report& report) {
  json.begin_object("paths");
  json.value("good", report.paths.good);
  json.value("skip", report.paths.skip);
  json.value("assumed_bad", report.paths.assumed_bad);
  json.value("denied", report.paths.denied);
  json.value("bad_but_working", report.paths.bad_but_working);
  json.value("dead", report.paths.dead);
  json.value("given_up", report.events.paths_given_up);
  json.value("revived", report.events.paths_revived);
  json.value("planes_lost", report.events.planes_lost);
  json.value("planes_back", report.events.planes_back);
  json.value("floors_reached", report.events.floors_reached);
  json.end_object();
}

void put_planes(JsonWriter& json, const Report& report) {
  json.begin_array("planes");
  for (unsigned plane = 0; plane < report.options.planes; ++plane) {
    json.begin_object();
    json.value("plane", plane + 1);
    json.value("bytes", report.plane_bytes(plane));
    json.end_object();
  }
  json.end_array();
  json.value("bucket_us", microseconds(kBucketNs));
  json.begin_array("goodput_gbps_by_bucket");
  for (std::size_t i = 0; i < report.buckets.size(); ++i)
    json.value("", bucket_bits_per_second(report, i) / 1e9);
  json.end_array();
}

}  // namespace

void print_json(const Report& report) {
  JsonWriter json(stdout);
  json.begin_object();
  put_cluster(json, report);
  put_result(json, report);
  json.begin_array("faults");
  for (const FaultReport& fault : report.faults)
    put_fault(json, fault);
  json.end_array();
  put_traffic(json, report);
  put_paths(json, report);
  put_planes(json, report);
  json.end_object();
}

}  // namespace mrc::demo
