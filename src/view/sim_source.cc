#include "view/sim_source.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace mrc::view {
namespace {

using fabric::LinkId;
using sim::Time;

// Lines stay far below kMaxLineBytes.
constexpr std::size_t kMovesPerLine = 4'096;

Nanoseconds to_ns(Time ps) { return ps / fabric::kPicosecondsPerNs; }

std::vector<Channel> counter_channels() {
  return {{"packets", "data"},      {"packets", "control"},  {"resends", "trimmed"},
          {"resends", "overtaken"}, {"resends", "late"},     {"resends", "time-out"},
          {"resends", "hedged"},    {"resends", "all"},      {"switches", "marks"},
          {"switches", "trims"},    {"drops", "queue full"}, {"drops", "link down"},
          {"drops", "random loss"}, {"drops", "no route"},   {"drops", "damaged"}};
}

std::vector<Channel> gauge_channels() {
  return {{"paths", "good"}, {"paths", "bad"}, {"bytes", "window"}, {"bytes", "in flight"}};
}

PacketMove::Fate fate_of(sim::LossCause cause) {
  switch (cause) {
    case sim::LossCause::kTrimmed:
      return PacketMove::Fate::kTrimmed;
    case sim::LossCause::kQueueFull:
      return PacketMove::Fate::kQueueFull;
    case sim::LossCause::kLinkDown:
      return PacketMove::Fate::kLinkDown;
    case sim::LossCause::kRandomLoss:
      return PacketMove::Fate::kRandomLoss;
    case sim::LossCause::kNoRoute:
      return PacketMove::Fate::kNoRoute;
  }
  return PacketMove::Fate::kMoves;
}

}  // namespace

SimSource::SimSource(sim::Simulation& simulation, SimSourceOptions options, LineSink sink)
    : simulation_(simulation),
      sink_(std::move(sink)),
      geometry_(simulation.topology()),
      writer_(geometry_),
      lane_bytes_(geometry_.lane_count()),
      plane_bytes_(geometry_.planes()),
      links_down_(geometry_.lane_count()),
      gauges_(geometry_.topology().hosts()),
      told_(gauges_.size()),
      moves_left_(options.filmed_hops),
      period_(options.period) {
  MRC_ASSERT(period_ > 0);
  const sim::Workload& workload = simulation.workload();
  for (sim::TaskId task = 0; task < workload.tasks.size(); ++task)
    if (workload.tasks[task].kind == sim::Task::Kind::kTransfer) open_.push_back(task);
  if (!simulation.faults().empty()) {
    moves_at_fault_ = moves_left_ / 2;
    moves_left_ -= moves_at_fault_;
  }
  frame_.lanes.resize(geometry_.lane_count());
  frame_.tallies.resize(geometry_.lane_count());
  frame_.plane_bytes.resize(geometry_.planes());
  send(writer_.header({.source = "sim",
                       .title = std::move(options.title),
                       .live = options.live,
                       .acts = options.acts,
                       .counters = counter_channels(),
                       .gauges = gauge_channels(),
                       .flows = open_.size(),
                       .command = std::move(options.command)}));
  simulation_.watch(*this);
  simulation_.sample(period_, [this](Time now) { return on_sample(now); });
}

void SimSource::send(std::string line) {
  bytes_ += line.size();
  sink_(std::move(line));
}

Time SimSource::on_sample(Time now) {
  tell(now, simulation_.so_far());
  if (++frames_ == kFramesPerEpoch || bytes_ > kEpochBytes) {
    frames_ = 0;
    bytes_ = 0;
    period_ *= 2;
  }
  return now + period_;
}

void SimSource::finish(const sim::SimResult& result) {
  if (to_ns(result.finished_at) > frame_.at) tell(result.finished_at, result);
  const char* const note = result.complete     ? "every transfer completed"
                           : result.failed > 0 ? "a transfer failed"
                                               : "the run ended before all transfers";
  sink_(writer_.end(to_ns(result.finished_at), note));
}

void SimSource::tell(Time now, const sim::SimResult& result) {
  frame_.span = to_ns(now) - frame_.at;
  look_at_links(now);
  look_at_hosts();
  look_at_planes(result);
  look_at_flows(result);
  look_at_faults(to_ns(now));
  frame_.at = to_ns(now);
  for (std::size_t from = 0; from < moves_.size(); from += kMovesPerLine) {
    const std::size_t count = std::min(kMovesPerLine, moves_.size() - from);
    send(writer_.packets(std::span(moves_).subspan(from, count)));
  }
  moves_.clear();
  send(writer_.frame(frame_));
  tell_senders(frame_.at);
}

// A host is told of when the numbers of its good and bad paths are others than before, and now and
// then while it sends, since windows and round trips change all the time.
void SimSource::tell_senders(Nanoseconds now) {
  if (gauges_.size() > kMaxTellingHosts) return;
  for (std::uint32_t h = 0; h < gauges_.size(); ++h) {
    const sim::HostGauges& g = gauges_[h];
    const bool changed = g.good_evs != told_[h].good_evs || g.bad_evs != told_[h].bad_evs;
    const bool due = g.connections > 0 && (frames_ + h) % kFramesPerReport == 0;
    if (!changed && !due) continue;
    told_[h] = g;
    send(writer_.senders(h, now, simulation_.host(h).senders(kMaxSenders)));
  }
}

void SimSource::look_at_links(Time now) {
  for (Lane& lane : frame_.lanes)
    lane = Lane{};
  std::fill(frame_.tallies.begin(), frame_.tallies.end(), LaneTally{});
  std::fill(links_down_.begin(), links_down_.end(), 0U);
  const sim::Network& network = simulation_.network();
  for (std::uint32_t i = 0; i < network.link_count(); ++i) {
    const LinkId link{i};
    const std::uint32_t lane_number = index(geometry_.lane_of(link));
    Lane& lane = frame_.lanes[lane_number];
    lane.queue_bytes += simulation_.queued_bytes(now, link);
    frame_.tallies[lane_number].trims += network.link(link).trims;
    frame_.tallies[lane_number].drops += network.link(link).drops;
    if (!network.link(link).faulty) continue;
    const LaneState state = state_of(network.condition(link));
    links_down_[lane_number] += state == LaneState::kDown ? 1 : 0;
    lane.state = std::max(lane.state, state);
  }
  for (std::uint32_t i = 0; i < frame_.lanes.size(); ++i) {
    settle(frame_.lanes[i], geometry_, LaneId{i},
           {.bytes = std::exchange(lane_bytes_[i], 0),
            .links_down = links_down_[i],
            .span = frame_.span});
  }
}

void SimSource::look_at_hosts() {
  sim::HostTotals totals;
  sim::HostGauges gauges;
  for (std::uint32_t h = 0; h < geometry_.topology().hosts(); ++h) {
    const sim::Host& host = simulation_.host(h);
    totals.add(host.totals());
    const sim::HostGauges& g = gauges_[h] = host.gauges();
    gauges.window_bytes += g.window_bytes;
    gauges.in_flight_bytes += g.in_flight_bytes;
    gauges.good_evs += g.good_evs;
    gauges.bad_evs += g.bad_evs;
  }
  const sim::NetworkCounters& network = simulation_.network().counters();
  frame_.counters = {totals.data_packets,  totals.control_packets,
                     totals.trim_nacks,    totals.lost_by_path_order,
                     totals.lost_by_time,  totals.lost_by_timeout,
                     totals.hedged,        totals.retransmits,
                     network.marks,        network.trims,
                     network.dropped_full, network.dropped_down,
                     network.dropped_loss, network.dropped_no_route,
                     network.corrupted};
  frame_.gauges = {gauges.good_evs, gauges.bad_evs, gauges.window_bytes, gauges.in_flight_bytes};
}

void SimSource::look_at_planes(const sim::SimResult& result) {
  for (unsigned plane = 0; plane < geometry_.planes(); ++plane) {
    const std::uint64_t total = result.series.total(plane);
    frame_.plane_bytes[plane] = total - std::exchange(plane_bytes_[plane], total);
  }
}

void SimSource::look_at_flows(const sim::SimResult& result) {
  frame_.flows.clear();
  const sim::Workload& workload = simulation_.workload();
  const auto ended = [&](sim::TaskId task) {
    const sim::FlowResult& flow = result.flows[task];
    if (flow.sent < 0) return false;
    const sim::Task& t = workload.tasks[task];
    if (frame_.flows.size() < Frame::kMaxFlows) {
      frame_.flows.push_back({.source = t.source,
                              .destination = t.destination,
                              .bytes = t.bytes,
                              .started = to_ns(flow.posted),
                              .ended = to_ns(flow.sent),
                              .ok = !flow.failed});
    }
    return true;
  };
  frame_.flows_ended += std::erase_if(open_, ended);
}

void SimSource::look_at_faults(Nanoseconds now) {
  frame_.faults.clear();
  const bool first = frame_.at == 0;
  const auto is_new = [&](Nanoseconds at) {
    return at <= now && (at > frame_.at || (first && at == 0));
  };
  for (const fabric::Fault& fault : simulation_.faults()) {
    if (is_new(to_ns(fault.start_ps)))
      frame_.faults.push_back({.at = to_ns(fault.start_ps), .begins = true, .text = fault.text});
    if (fault.duration_ps >= fabric::kForever - fault.start_ps) continue;
    const Nanoseconds end = to_ns(fault.start_ps + fault.duration_ps);
    if (is_new(end)) frame_.faults.push_back({.at = end, .begins = false, .text = fault.text});
  }
}

PacketMove SimSource::move_of(Time at, LinkId link, sim::PacketId packet) {
  const sim::PacketHead& head = simulation_.packets().head(packet);
  return {.at = to_ns(at),
          .lane = geometry_.lane_of(link),
          .source = head.source,
          .destination = head.destination,
          .bytes = head.bytes,
          .control = head.priority == sim::PacketClass::kControl,
          .cut = head.trim != sim::PacketTrim::kWhole,
          .marked = head.congestion_experienced,
          .again = head.retransmission};
}

void SimSource::keep(const PacketMove& move) {
  --moves_left_;
  moves_.push_back(move);
}

void SimSource::on_started(Time at, LinkId link, sim::PacketId packet) {
  lane_bytes_[index(geometry_.lane_of(link))] += simulation_.packets().head(packet).bytes;
  if (moves_at_fault_ > 0 && simulation_.network().any_down())
    moves_left_ += std::exchange(moves_at_fault_, 0);
  if (moves_left_ > 0) keep(move_of(at, link, packet));
}

void SimSource::on_lost(Time now, sim::PacketId packet, sim::LossCause cause) {
  if (moves_left_ == 0) return;
  PacketMove move = move_of(now, simulation_.packets().head(packet).link, packet);
  move.fate = fate_of(cause);
  keep(move);
}

}  // namespace mrc::view
