#include "commands/stat/device_report.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/event.h"
#include "node/telemetry_rates.h"
#include "text.h"
#include "wire/drop_reason.h"

namespace mrc::tool::stat {
namespace {

using Json = nlohmann::ordered_json;
using node::TelemetryBody;

constexpr std::size_t kColumns = 79;

// Of a process before its start.
const TelemetryBody& nothing() {
  static const TelemetryBody kNothing;
  return kNothing;
}

std::string text_of(const node::TelemetryAddress& address) {
  return std::string(wire::format_address(address.address()).view());
}

const char* text_of(std::uint32_t state) {
  constexpr std::array<const char*, 5> kNames = {"reset", "init", "rtr", "rts", "error"};
  return kNames.at(state);
}

Json paths_of(const node::TelemetryPathCounts& paths) {
  Json counts;
  for (std::size_t i = 0; i < paths.size(); ++i)
    counts[core::ev_state_name(static_cast<core::EvState>(i))] = paths[i];
  return counts;
}

Json counters_of(const core::QpCounters& counters) {
  return {{"sent_packets", counters.data_sent},
          {"sent_bytes", counters.bytes_sent},
          {"resent_packets", counters.retransmitted},
          {"lost_by_path_order", counters.lost_by_path_order},
          {"lost_by_time", counters.lost_by_time},
          {"lost_by_timeout", counters.lost_by_timeout},
          {"speculative", counters.hedged},
          {"trimmed", counters.trimmed},
          {"refused", counters.refused},
          {"spurious", counters.spurious},
          {"marked", counters.marked},
          {"probes_sent", counters.probes_sent},
          {"timeouts", counters.timeouts},
          {"messages_completed", counters.messages_completed},
          {"received_packets", counters.data_received},
          {"received_bytes", counters.bytes_received},
          {"duplicates", counters.duplicates},
          {"immediates", counters.immediates},
          {"sacks_sent", counters.sacks_sent},
          {"nacks_sent", counters.nacks_sent},
          {"acks_sent", counters.acks_sent},
          {"sacks_received", counters.sacks_received}};
}

Json histogram_of(const node::TelemetryHistogram& histogram) {
  Json buckets = Json::array();
  for (std::size_t i = 0; i < histogram.buckets.size(); ++i) {
    if (histogram.buckets[i] == 0) continue;
    const bool last = i + 1 == histogram.buckets.size();
    buckets.push_back({{"up_to_ns", last ? Json() : Json(node::TelemetryHistogram::bound_ns(i))},
                       {"count", histogram.buckets[i]}});
  }
  return {{"count", histogram.count()}, {"sum_ns", histogram.sum_ns}, {"buckets", buckets}};
}

Json planes_of(const TelemetryBody& body, const node::TelemetryRates& rates) {
  Json planes = Json::array();
  for (std::size_t i = 0; i < body.plane_count; ++i) {
    const node::TelemetryPlane& plane = body.planes[i];
    planes.push_back({{"plane", plane.plane()},
                      {"port", plane.port},
                      {"interface", plane.interface.text()},
                      {"address", text_of(plane.address)},
                      {"enabled", plane.enabled != 0},
                      {"link_up", plane.link_up != 0},
                      {"link_changes", plane.link_changes},
                      {"sent_packets", plane.packets_sent},
                      {"sent_bytes", plane.bytes_sent},
                      {"received_packets", plane.packets_received},
                      {"received_bytes", plane.bytes_received},
                      {"sent_bytes_per_second", rates.planes[i].sent_bytes},
                      {"received_bytes_per_second", rates.planes[i].received_bytes},
                      {"lost", plane.lost},
                      {"marked", plane.marked},
                      {"silent_queue_pairs", plane.silent},
                      {"paths", paths_of(plane.paths)}});
  }
  return planes;
}

Json queue_pairs_of(const TelemetryBody& body) {
  Json list = Json::array();
  for (std::size_t i = 0; i < body.listed_queue_pairs; ++i) {
    const node::TelemetryQueuePair& pair = body.list[i];
    list.push_back({{"number", pair.number},
                    {"peer", text_of(pair.peer)},
                    {"remote_number", pair.remote_number},
                    {"state", text_of(pair.state)},
                    {"bytes_per_second", pair.bytes_per_second},
                    {"round_trip_ns", pair.round_trip_ns},
                    {"window_bytes", pair.window_bytes},
                    {"window_used_bytes", pair.window_used_bytes},
                    {"packets_in_flight", pair.packets_in_flight},
                    {"packets_to_resend", pair.packets_to_resend},
                    {"messages_outstanding", pair.messages_outstanding},
                    {"paths", paths_of(pair.paths)},
                    {"counters", counters_of(pair.counters)}});
  }
  return list;
}

Json bad_paths_of(const TelemetryBody& body) {
  Json list = Json::array();
  for (std::size_t i = 0; i < body.listed_paths; ++i) {
    const node::TelemetryPath& path = body.paths[i];
    list.push_back({{"queue_pair", path.queue_pair},
                    {"plane", path.plane()},
                    {"entropy", path.entropy},
                    {"state", core::ev_state_name(static_cast<core::EvState>(path.state))},
                    {"lost", path.lost},
                    {"marked", path.marked}});
  }
  return list;
}

std::string plane_line(const node::TelemetryPlane& plane, const node::TelemetryPlaneRates& rates) {
  const auto count = [&](core::EvState state) {
    return plane.paths[static_cast<std::size_t>(state)];
  };
  const char* const state = plane.link_up == 0 ? "down" : plane.enabled == 0 ? "off" : "up";
  return fmt::format(
      "  {:>5}  {:<12.12}  {:<4} {:>10} {:>10} {:>6} {:>6} {:>15}", plane.plane(),
      plane.interface.text().empty() ? text_of(plane.address) : plane.interface.text(), state,
      rate_text(rates.sent_bytes), rate_text(rates.received_bytes), plane.lost, plane.marked,
      fmt::format("{}/{}/{}", count(core::EvState::kGood) + count(core::EvState::kSkip),
                  count(core::EvState::kAssumedBad), count(core::EvState::kDenied)));
}

std::string queue_pair_line(const node::TelemetryQueuePair& pair) {
  return fmt::format("  {:#08x}  {:<16.16} {:<5} {:>10} {:>9} {:>9} {:>7}", pair.number,
                     text_of(pair.peer), text_of(pair.state),
                     rate_text(static_cast<double>(pair.bytes_per_second)),
                     fmt::format("{:.0f} us", static_cast<double>(pair.round_trip_ns) / 1e3),
                     fmt::format("{} KiB", pair.window_bytes / 1'024), pair.counters.retransmitted);
}

std::vector<std::string> shortened(std::vector<std::string> lines) {
  for (std::string& line : lines)
    if (line.size() > kColumns) line.resize(kColumns);
  return lines;
}

void add_totals(const TelemetryBody& body, std::vector<std::string>& lines) {
  const core::QpCounters& sum = body.traffic;
  lines.push_back(
      fmt::format("  sent {} packets, resent {} (order {}, time {}, timeout {}, trim {})",
                  sum.data_sent, sum.retransmitted, sum.lost_by_path_order, sum.lost_by_time,
                  sum.lost_by_timeout, sum.trimmed));
  std::string drops;
  for (std::size_t i = 1; i < body.drops.size(); ++i) {
    if (body.drops[i] == 0) continue;
    drops += fmt::format("{}{} {}", drops.empty() ? "" : ", ",
                         drop_reason_name(static_cast<DropReason>(i)), body.drops[i]);
  }
  if (!drops.empty()) lines.push_back("  dropped: " + drops);
}

// Of a process that has ended nothing is left to look at.
std::vector<std::string> alarms_of(const Change& change) {
  std::vector<std::string> alarms;
  if (!change.now->alive) return alarms;
  const TelemetryBody& body = change.now->body;
  for (node::TelemetryFinding& finding : node::telemetry_findings(*change.before, body)) {
    if (!change.is_short || finding.alarm != node::TelemetryAlarm::kPortFlapping)
      alarms.push_back(std::move(finding.text));
  }
  if (!change.is_short) return alarms;
  for (const node::TelemetryFinding& finding : node::telemetry_findings(nothing(), body)) {
    if (finding.alarm == node::TelemetryAlarm::kPortFlapping)
      alarms.push_back(finding.text + " since the process started");
  }
  return alarms;
}

std::string heading(const Change& change, const node::TelemetryRates& rates) {
  const TelemetryBody& body = change.now->body;
  std::string name = fmt::format("{} of {} (pid {}, user {})", body.device.text(),
                                 body.process.name.text(), body.process.pid, change.now->owner);
  if (!change.now->alive) return name + ": has ended; mrc stat --clean removes it";
  if (rates.seconds <= 0) return name;
  const bool whole = change.before->written_unix_ns == 0;
  return fmt::format("{}: rates {} {:.1f} s", name, whole ? "since its start," : "of the last",
                     rates.seconds);
}

}  // namespace

std::vector<Change> changes_of(const node::TelemetryListing& before,
                               const node::TelemetryListing& now) {
  std::vector<Change> changes;
  for (const node::TelemetryReading& reading : now.readings) {
    Change change{.before = &nothing(), .now = &reading};
    for (const node::TelemetryReading& earlier : before.readings) {
      if (earlier.path == reading.path && node::is_same_device(earlier.body, reading.body))
        change.before = &earlier.body;
    }
    changes.push_back(change);
  }
  return changes;
}

Json describe(const Change& change) {
  const TelemetryBody& body = change.now->body;
  const node::TelemetryRates rates = node::telemetry_rates(*change.before, body);
  Json drops;
  for (std::size_t i = 1; i < body.drops.size(); ++i)
    drops[drop_reason_name(static_cast<DropReason>(i))] = body.drops[i];
  Json engines = Json::array();
  for (std::size_t i = 0; i < body.engine_count; ++i)
    engines.push_back(
        {{"cpu_ns", body.engines[i].cpu_ns}, {"queue_pairs", body.engines[i].queue_pairs}});
  return {{"pid", body.process.pid},
          {"process", body.process.name.text()},
          {"device", body.device.text()},
          {"user", change.now->owner},
          {"alive", change.now->alive},
          {"started_unix_ns", body.process.started_unix_ns},
          {"written_unix_ns", body.written_unix_ns},
          {"written_ns", body.written_ns},
          {"gid", text_of(body.gid)},
          {"path_mtu_bytes", body.path_mtu},
          {"port_bits_per_second", body.port_bits_per_second},
          {"process_cpu_ns", body.process.cpu_ns},
          {"sweeps", body.sweeps},
          {"sweep_ns", body.sweep_ns},
          {"rates",
           {{"seconds", rates.seconds},
            {"sent_bytes_per_second", rates.sent_bytes},
            {"received_bytes_per_second", rates.received_bytes},
            {"sent_packets_per_second", rates.sent_packets},
            {"resent_packets_per_second", rates.resent_packets},
            {"messages_per_second", rates.messages},
            {"dropped_packets_per_second", rates.dropped_packets},
            {"processors", rates.processors}}},
          {"totals", counters_of(body.traffic)},
          {"failed_messages", body.failed_messages},
          {"drops", drops},
          {"network",
           {{"send_calls", body.network.send_calls},
            {"receive_calls", body.network.receive_calls},
            {"send_refused", body.network.send_refused},
            {"receive_overflow", body.network.receive_overflow},
            {"answers_dropped", body.network.answers_dropped}}},
          {"round_trips", histogram_of(body.round_trips)},
          {"message_latencies", histogram_of(body.latencies)},
          {"engines", engines},
          {"planes", planes_of(body, rates)},
          {"queue_pairs", body.queue_pairs},
          {"busiest_queue_pairs", queue_pairs_of(body)},
          {"bad_paths", bad_paths_of(body)},
          {"alarms", alarms_of(change)}};
}

std::vector<std::string> lines_of(const Change& change, std::size_t queue_pairs) {
  const TelemetryBody& body = change.now->body;
  const node::TelemetryRates rates = node::telemetry_rates(*change.before, body);
  std::vector<std::string> lines;
  lines.push_back(heading(change, rates));
  for (const std::string& alarm : alarms_of(change))
    lines.push_back("  ! " + alarm);
  if (change.now->alive)
    lines.push_back(fmt::format("  sends {}, receives {}, {:.0f} messages/s, {:.2f} processors",
                                rate_text(rates.sent_bytes), rate_text(rates.received_bytes),
                                rates.messages, rates.processors));
  add_totals(body, lines);
  if (!change.now->alive) return shortened(std::move(lines));
  lines.push_back(
      "  plane  interface     link      sends   receives   lost marked "
      "good/bad/denied");
  for (std::size_t i = 0; i < body.plane_count; ++i)
    lines.push_back(plane_line(body.planes[i], rates.planes[i]));
  const std::size_t shown = std::min<std::size_t>(queue_pairs, body.listed_queue_pairs);
  if (shown > 0) {
    lines.push_back("  queue pair  peer             state       rate  round tr.    window  resent");
    for (std::size_t i = 0; i < shown; ++i)
      lines.push_back(queue_pair_line(body.list[i]));
    if (body.queue_pairs > shown)
      lines.push_back(fmt::format("  and {} more queue pairs", body.queue_pairs - shown));
  }
  return shortened(std::move(lines));
}

std::string rate_text(double bytes_per_second) {
  const double bits = 8 * bytes_per_second;
  if (bits >= 1e9) return fmt::format("{:.2f} Gb/s", bits / 1e9);
  if (bits >= 1e6) return fmt::format("{:.1f} Mb/s", bits / 1e6);
  return fmt::format("{:.1f} kb/s", bits / 1e3);
}

std::string nothing_line(const node::TelemetryQuery& query, const node::TelemetryListing& listing) {
  std::string what = "no process with an MRC device";
  if (query.pid) what += fmt::format(" has pid {}", *query.pid);
  if (!query.device.empty())
    what += fmt::format("{} device {}", query.pid ? " and" : " has", query.device);
  if (!query.pid && query.device.empty()) what += " runs here";
  what += fmt::format(" (looked in {})", query.directory);
  if (listing.closed_folders > 0)
    what += fmt::format(
        "; {} may not be looked at: run as root, or see telemetry_group in "
        "docs/configuration.md",
        counted(listing.closed_folders, "user's processes", "users' processes"));
  return what;
}

}  // namespace mrc::tool::stat
