#include "node/telemetry_rates.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mrc::node {
namespace {

double growth(std::uint64_t before, std::uint64_t now) {
  return now >= before ? static_cast<double>(now - before) : 0;
}

// Packets that were dropped, for whatever reason; the first entry counts those that were not.
std::uint64_t dropped(const TelemetryBody& body) {
  return std::accumulate(body.drops.begin() + 1, body.drops.end(), std::uint64_t{0});
}

std::string plane_name(const TelemetryPlane& plane) {
  std::string name = "plane " + std::to_string(plane.plane());
  const std::string interface = plane.interface.text();
  return interface.empty() ? name : name + " (" + interface + ")";
}

// "1 path", "2 paths".
std::string counted(std::uint32_t number, const char* what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

// "3.4 %".
std::string percent(double share) {
  const std::int64_t tenths = std::llround(share * 1'000);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

double bytes_of(const TelemetryPlane& before, const TelemetryPlane& now) {
  return growth(before.bytes_sent, now.bytes_sent) +
         growth(before.bytes_received, now.bytes_received);
}

// Whether all its paths, if there are any, have been taken out of use, as `mrc drain` does.
bool is_drained(const TelemetryPlane& plane) {
  const auto all = std::accumulate(plane.paths.begin(), plane.paths.end(), std::uint32_t{0});
  return all > 0 && plane.paths[static_cast<std::size_t>(core::EvState::kDenied)] == all;
}

bool is_active(const TelemetryPlane& plane) {
  return plane.enabled != 0 && plane.link_up != 0 && !is_drained(plane);
}

void find_uneven(const TelemetryBody& before, const TelemetryBody& now,
                 std::vector<TelemetryFinding>& found) {
  double all = 0;
  unsigned active = 0;
  for (std::size_t i = 0; i < now.plane_count; ++i) {
    if (!is_active(now.planes[i])) continue;
    all += bytes_of(before.planes[i], now.planes[i]);
    ++active;
  }
  if (active < 2 || all < kLeastEvenBytes) return;
  for (std::size_t i = 0; i < now.plane_count; ++i) {
    const double share = bytes_of(before.planes[i], now.planes[i]) * active / all;
    if (!is_active(now.planes[i]) || share >= kUnevenShare) continue;
    found.push_back({TelemetryAlarm::kPlanesUneven,
                     plane_name(now.planes[i]) + ": carries " + percent(share) + " of its share"});
  }
}

void find_links(const TelemetryBody& before, const TelemetryBody& now,
                std::vector<TelemetryFinding>& found) {
  for (std::size_t i = 0; i < now.plane_count; ++i) {
    const TelemetryPlane& plane = now.planes[i];
    // One that a controller has turned off is no alarm.
    if (plane.link_up == 0 && plane.enabled != 0)
      found.push_back({TelemetryAlarm::kPlaneDown, plane_name(plane) + ": link down"});
    const double changes = growth(before.planes[i].link_changes, plane.link_changes);
    if (changes >= static_cast<double>(kFlaps)) {
      found.push_back({TelemetryAlarm::kPortFlapping,
                       plane_name(plane) + ": went up and down, " +
                           std::to_string(static_cast<std::uint64_t>(changes)) + " changes"});
    }
    if (plane.silent > 0) {
      found.push_back({TelemetryAlarm::kSilentPeer, plane_name(plane) + ": peers of " +
                                                        counted(plane.silent, "queue pair") +
                                                        " do not answer"});
    }
    const std::uint32_t bad = plane.paths[static_cast<std::size_t>(core::EvState::kAssumedBad)];
    if (bad > 0) {
      found.push_back({TelemetryAlarm::kBadPaths,
                       plane_name(plane) + ": " + counted(bad, "path") + " assumed bad"});
    }
  }
}

}  // namespace

bool is_same_device(const TelemetryBody& before, const TelemetryBody& now) {
  return before.process.pid == now.process.pid &&
         before.process.start_ticks == now.process.start_ticks &&
         before.device.text() == now.device.text();
}

TelemetryRates telemetry_rates(const TelemetryBody& before, const TelemetryBody& now) {
  TelemetryRates rates;
  rates.planes.resize(now.plane_count);
  const std::int64_t from =
      before.written_unix_ns != 0 ? before.written_unix_ns : now.process.started_unix_ns;
  if (now.written_unix_ns <= from) return rates;
  rates.seconds = static_cast<double>(now.written_unix_ns - from) / 1e9;
  const auto rate = [&](std::uint64_t earlier, std::uint64_t later) {
    return growth(earlier, later) / rates.seconds;
  };
  rates.sent_bytes = rate(before.traffic.bytes_sent, now.traffic.bytes_sent);
  rates.received_bytes = rate(before.traffic.bytes_received, now.traffic.bytes_received);
  rates.sent_packets = rate(before.traffic.data_sent, now.traffic.data_sent);
  rates.resent_packets = rate(before.traffic.retransmitted, now.traffic.retransmitted);
  rates.messages = rate(before.traffic.messages_completed, now.traffic.messages_completed);
  rates.dropped_packets = rate(dropped(before), dropped(now));
  rates.processors = rate(before.process.cpu_ns, now.process.cpu_ns) / 1e9;
  for (std::size_t i = 0; i < now.plane_count; ++i) {
    const TelemetryPlane& earlier = before.planes[i];
    const TelemetryPlane& later = now.planes[i];
    rates.planes[i] = {.sent_bytes = rate(earlier.bytes_sent, later.bytes_sent),
                       .received_bytes = rate(earlier.bytes_received, later.bytes_received),
                       .lost_packets = rate(earlier.lost, later.lost)};
  }
  return rates;
}

std::vector<TelemetryFinding> telemetry_findings(const TelemetryBody& before,
                                                 const TelemetryBody& now) {
  std::vector<TelemetryFinding> found;
  find_links(before, now, found);
  find_uneven(before, now, found);
  const double sent = growth(before.traffic.data_sent, now.traffic.data_sent);
  const double resent = growth(before.traffic.retransmitted, now.traffic.retransmitted);
  if (sent >= static_cast<double>(kLeastPackets) && resent > kManyResends * sent) {
    found.push_back({TelemetryAlarm::kResends, percent(resent / sent) + " of the packets resent"});
  }
  return found;
}

}  // namespace mrc::node
