#include "nic/engine/engine_telemetry.h"

#include <algorithm>
#include <bit>

#include "nic/engine/engine_pump.h"
#include "nic/queue_pair.h"

namespace mrc::nic {
namespace {

// About 0.1 ms under the lock at a time.
constexpr unsigned kQueuePairsAtOnce = 128;

using Words = std::array<std::uint64_t, sizeof(core::QpCounters) / sizeof(std::uint64_t)>;

// Since `told`; all of it where the counter has begun anew.
template <typename Number>
Number growth(Number now, Number told) {
  return now >= told ? now - told : now;
}

void fill_entry(const core::QpStatus& status, const QueuePairImpl& qp,
                node::TelemetryQueuePair& entry) {
  const auto size = [](std::int64_t value) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0));
  };
  entry.number = static_cast<std::uint32_t>(qp.number());
  entry.remote_number = static_cast<std::uint32_t>(qp.e.rtr.remote_qp);
  entry.state = static_cast<std::uint32_t>(qp.state());
  entry.packets_in_flight = status.packets_in_flight;
  entry.packets_to_resend = status.packets_lost;
  entry.messages_outstanding = status.sends_outstanding;
  entry.peer = node::TelemetryAddress::of(qp.e.remote.gid);
  entry.counters = status.counters;
  entry.window_bytes = size(status.window_bytes);
  entry.window_used_bytes = size(status.peer_bytes_in_flight);
  entry.round_trip_ns = size(status.smoothed_rtt_ns);
}

// Takes the place of the least busy one where there is none free.
void list(const node::TelemetryQueuePair& entry, node::TelemetryBody& body) {
  if (body.listed_queue_pairs < body.list.size()) {
    body.list[body.listed_queue_pairs++] = entry;
    return;
  }
  const auto least =
      std::ranges::min_element(body.list, {}, &node::TelemetryQueuePair::bytes_per_second);
  if (least->bytes_per_second < entry.bytes_per_second) *least = entry;
}

}  // namespace

std::uint64_t EngineTelemetry::settle_counters(const core::QpCounters& now,
                                               core::QpCounters& told) {
  const Words before = std::bit_cast<Words>(told);
  const Words after = std::bit_cast<Words>(now);
  Words sums = std::bit_cast<Words>(traffic_);
  for (std::size_t i = 0; i < sums.size(); ++i)
    sums[i] += growth(after[i], before[i]);
  const std::uint64_t moved =
      growth(now.bytes_sent, told.bytes_sent) + growth(now.bytes_received, told.bytes_received);
  traffic_ = std::bit_cast<core::QpCounters>(sums);
  told = now;
  return moved;
}

void EngineTelemetry::settle(const EnginePump& pump, QueuePairImpl& qp) {
  const Result<core::QpStatus> status = pump.endpoint().query_qp(qp.number());
  if (status.ok()) settle_counters(status.value().counters, qp.e.told.counters);
}

unsigned EngineTelemetry::collect(const EnginePump& pump, unsigned page, TelemetrySweep& sweep) {
  unsigned seen = 0;
  for (; page < QpTable::kPages && seen < kQueuePairsAtOnce; ++page) {
    pump.qps().for_each_on_page(page, [&](QueuePairImpl& qp) {
      ++seen;
      collect_one(pump, qp, sweep);
    });
  }
  return page;
}

void EngineTelemetry::collect_one(const EnginePump& pump, QueuePairImpl& qp,
                                  TelemetrySweep& sweep) {
  const Result<core::QpStatus> status = pump.endpoint().query_qp(qp.number());
  if (!status.ok()) return;
  ++sweep.body.queue_pairs;
  node::TelemetryQueuePair entry;
  fill_entry(status.value(), qp, entry);
  const bool sent = status.value().counters.sacks_received != qp.e.told.counters.sacks_received;
  const std::uint64_t moved = settle_counters(status.value().counters, qp.e.told.counters);
  if (moved != 0) sweep.moved = true;
  if (sent && entry.round_trip_ns != 0)
    round_trips_.add(static_cast<DurationNs>(entry.round_trip_ns));
  // In parts of a microsecond, so that nothing overflows below 18 TB.
  entry.bytes_per_second = moved * 1'000'000 / std::max<std::uint64_t>(sweep.elapsed_ns / 1'000, 1);
  collect_paths(pump, qp, entry, sweep.body);
  list(entry, sweep.body);
}

void EngineTelemetry::collect_paths(const EnginePump& pump, QueuePairImpl& qp,
                                    node::TelemetryQueuePair& entry, node::TelemetryBody& body) {
  // Of ports that are down or turned off, others tell.
  const PortMask silent = qp.e.silent_planes & pump.endpoint().ports_up();
  for (const PortId port : silent)
    ++body.planes[static_cast<unsigned>(port) - 1].silent;
  if (!qp.e.paths) return;
  const core::EvProfile& profile = qp.e.paths->profile;
  std::vector<core::EvCounters>& told = qp.e.told.evs;
  told.resize(profile.size());
  for (unsigned i = 0; i < profile.size(); ++i) {
    const auto ev = static_cast<EvIndex>(i);
    const Result<core::EvState> state = pump.endpoint().query_ev(qp.number(), ev);
    const Result<core::EvCounters> counters = pump.endpoint().query_ev_counters(qp.number(), ev);
    const core::EvEntry& path = profile.entry(ev);
    const unsigned plane = static_cast<unsigned>(path.port) - 1;
    if (!state.ok() || !counters.ok() || plane >= kMaxPorts) continue;
    const auto number = static_cast<std::size_t>(state.value());
    ++entry.paths[number];
    ++body.planes[plane].paths[number];
    planes_[plane].lost += growth(counters.value().lost, told[i].lost);
    planes_[plane].marked += growth(counters.value().marked, told[i].marked);
    told[i] = counters.value();
    const bool bad = state.value() >= core::EvState::kAssumedBad;
    if (!bad || body.listed_paths == body.paths.size()) continue;
    body.paths[body.listed_paths++] = {.queue_pair = entry.number,
                                       .port = plane + 1,
                                       .entropy = path.entropy,
                                       .state = static_cast<std::uint32_t>(number),
                                       .lost = counters.value().lost,
                                       .marked = counters.value().marked};
  }
}

void EngineTelemetry::add_sums(const EnginePump& pump, bool lead, node::TelemetryBody& body) const {
  Words sums = std::bit_cast<Words>(body.traffic);
  const Words own = std::bit_cast<Words>(traffic_);
  for (std::size_t i = 0; i < sums.size(); ++i)
    sums[i] += own[i];
  body.traffic = std::bit_cast<core::QpCounters>(sums);
  body.latencies.add(latencies_);
  body.round_trips.add(round_trips_);
  body.failed_messages += failed_;
  const core::EndpointCounters& counted = pump.endpoint().counters();
  for (std::size_t i = 0; i < counted.drops.size(); ++i)
    body.drops[i] += counted.drops[i];
  const BackendCounters& calls = pump.backend().counters();
  body.network.send_calls += calls.send_calls;
  body.network.receive_calls += calls.receive_calls;
  body.network.send_refused += calls.send_refused;
  body.network.receive_overflow += calls.receive_overflow;
  body.network.answers_dropped += counted.control_dropped;
  for (std::size_t i = 0; i < body.plane_count && i < counted.ports.size(); ++i) {
    node::TelemetryPlane& plane = body.planes[i];
    plane.packets_sent += counted.ports[i].packets_sent;
    plane.bytes_sent += counted.ports[i].bytes_sent;
    plane.packets_received += counted.ports[i].packets_received;
    plane.bytes_received += counted.ports[i].bytes_received;
    plane.lost += planes_[i].lost;
    plane.marked += planes_[i].marked;
    // All engines notice; the lead's word counts, as it does for programs.
    if (lead) plane.link_changes += planes_[i].changes;
  }
}

}  // namespace mrc::nic
