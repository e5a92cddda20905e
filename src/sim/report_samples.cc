#include "sim/report_samples.h"

#include <algorithm>

#include "base/assert.h"

namespace mrc::sim {
namespace {

using fabric::NodeKind;

// One way out of one kind of switch.
struct Direction {
  NodeKind from;
  NodeKind to;
};
constexpr Direction kDirections[] = {{NodeKind::kT0, NodeKind::kT1},
                                     {NodeKind::kT1, NodeKind::kT2},
                                     {NodeKind::kT2, NodeKind::kT1},
                                     {NodeKind::kT1, NodeKind::kT0},
                                     {NodeKind::kT0, NodeKind::kHost}};

unsigned switch_count(const fabric::TopologySpec& spec, NodeKind kind) {
  if (kind == NodeKind::kT0) return spec.t0;
  return kind == NodeKind::kT1 ? spec.t1 : spec.t2;
}

void merge(Sample& into, const Sample& later) {
  into.at = later.at;
  into.senders = later.senders;
  into.queued_bytes = later.queued_bytes;
  into.deepest_queue_bytes = std::max(into.deepest_queue_bytes, later.deepest_queue_bytes);
  for (std::size_t row = 0; row < into.row_bytes.size(); ++row)
    into.row_bytes[row] = std::max(into.row_bytes[row], later.row_bytes[row]);
}

}  // namespace

SampleRecorder::SampleRecorder(Simulation& simulation, Time period) : simulation_(simulation) {
  MRC_ASSERT(period > 0);
  series_.period = period;
  make_rows();
  simulation_.sample(period, [this](Time now) { return on_sample(now); });
}

void SampleRecorder::make_rows() {
  const fabric::Topology& topology = simulation_.topology();
  std::vector<unsigned> first_row;
  for (const Direction& direction : kDirections) {
    first_row.push_back(static_cast<unsigned>(series_.rows.size()));
    const unsigned count = switch_count(topology.spec(), direction.from);
    const bool exists =
        direction.from != NodeKind::kT1 || direction.to != NodeKind::kT2 || topology.three_tier();
    const unsigned rows = exists ? std::min(count, kRowsPerKind) : 0;
    for (unsigned row = 0; row < rows; ++row) {
      // The switches whose number times rows over count is this row.
      const unsigned from = (row * count + rows - 1) / rows;
      const unsigned to = ((row + 1) * count + rows - 1) / rows - 1;
      std::string name = fabric::node_kind_name(direction.from) + (":" + std::to_string(from));
      if (to > from) name += "-" + std::to_string(to);
      series_.rows.push_back(name + " to " + fabric::node_kind_name(direction.to));
    }
  }
  row_of_link_.resize(topology.link_count(), kNoRow);
  for (std::uint32_t i = 0; i < topology.link_count(); ++i) {
    const fabric::Link link = topology.describe(fabric::LinkId{i});
    for (std::size_t d = 0; d < std::size(kDirections); ++d) {
      if (link.from.kind != kDirections[d].from || link.to.kind != kDirections[d].to) continue;
      const unsigned count = switch_count(topology.spec(), link.from.kind);
      const unsigned rows = std::min(count, kRowsPerKind);
      row_of_link_[i] =
          static_cast<std::uint8_t>(first_row[d] + std::uint64_t{link.from.index} * rows / count);
    }
  }
}

Time SampleRecorder::on_sample(Time now) {
  const fabric::Topology& topology = simulation_.topology();
  Sample& sample = series_.samples.emplace_back();
  sample.at = now;
  sample.queued_bytes.resize(topology.planes());
  sample.row_bytes.resize(series_.rows.size());
  const std::uint32_t links_per_plane = topology.link_count() / topology.planes();
  for (std::uint32_t i = 0; i < row_of_link_.size(); ++i) {
    if (row_of_link_[i] == kNoRow) continue;
    const std::uint32_t bytes = simulation_.queued_bytes(now, fabric::LinkId{i});
    sample.queued_bytes[i / links_per_plane] += bytes;
    sample.deepest_queue_bytes = std::max(sample.deepest_queue_bytes, bytes);
    std::uint32_t& row = sample.row_bytes[row_of_link_[i]];
    row = std::max(row, bytes);
  }
  for (std::uint32_t host = 0; host < topology.hosts(); ++host) {
    const HostGauges gauges = simulation_.host(host).gauges();
    sample.senders.connections += gauges.connections;
    sample.senders.window_bytes += gauges.window_bytes;
    sample.senders.in_flight_bytes += gauges.in_flight_bytes;
    sample.senders.good_evs += gauges.good_evs;
    sample.senders.bad_evs += gauges.bad_evs;
  }
  // Full at an even number of samples, so that their times remain multiples of the period.
  if (series_.samples.size() == kMaxSamples) widen();
  return now + series_.period;
}

void SampleRecorder::widen() {
  std::vector<Sample>& samples = series_.samples;
  for (std::size_t i = 0; i + 1 < samples.size(); i += 2) {
    merge(samples[i], samples[i + 1]);
    if (i > 0) samples[i / 2] = std::move(samples[i]);
  }
  samples.resize(samples.size() / 2);
  series_.period *= 2;
}

}  // namespace mrc::sim
