#include "view/stream.h"

#include <algorithm>
#include <array>

#include "base/assert.h"

namespace mrc::view {
namespace {

void write_channels(JsonLine& line, std::string_view key, const std::vector<Channel>& channels) {
  line.open_list(key);
  for (const Channel& channel : channels) {
    line.open_list();
    line.text({}, channel.group);
    line.text({}, channel.name);
    line.close_list();
  }
  line.close_list();
}

void write_numbers(JsonLine& line, std::string_view key, const std::vector<std::uint64_t>& values) {
  line.open_list(key);
  for (const std::uint64_t value : values)
    line.number(static_cast<std::int64_t>(value));
  line.close_list();
}

void write_flows(JsonLine& line, const std::vector<FlowEnd>& flows) {
  if (flows.empty()) return;
  line.open_list("f");
  for (std::size_t i = 0; i < std::min(flows.size(), Frame::kMaxFlows); ++i) {
    const FlowEnd& flow = flows[i];
    line.open_list();
    line.number(flow.source);
    line.number(flow.destination);
    line.number(static_cast<std::int64_t>(flow.bytes));
    line.number(flow.started);
    line.number(flow.ended);
    line.number(flow.ok ? 1 : 0);
    line.close_list();
  }
  line.close_list();
}

void write_faults(JsonLine& line, const std::vector<FaultMark>& faults) {
  if (faults.empty()) return;
  line.open_list("x");
  for (const FaultMark& fault : faults) {
    line.open_list();
    line.number(fault.at);
    line.number(fault.begins ? 1 : 0);
    line.text({}, fault.text);
    line.close_list();
  }
  line.close_list();
}

void write_sender(JsonLine& line, const sim::SenderStatus& sender) {
  std::vector<std::array<std::int64_t, core::kEvStateCount>> planes;
  for (const sim::SenderStatus::Path& path : sender.paths) {
    if (path.plane >= planes.size()) planes.resize(path.plane + 1);
    ++planes[path.plane][static_cast<std::size_t>(path.state)];
  }
  line.open_object();
  line.number("peer", sender.peer);
  line.number("connection", sender.connection);
  line.number("window", static_cast<std::int64_t>(sender.window_bytes));
  line.number("in_flight", static_cast<std::int64_t>(sender.in_flight_bytes));
  line.number("round_trip_ns", sender.round_trip_ns);
  line.number("resent", static_cast<std::int64_t>(sender.resent));
  line.number("timeouts", static_cast<std::int64_t>(sender.timeouts));
  line.open_list("planes");
  for (const auto& states : planes) {
    line.open_list();
    for (const std::int64_t paths : states)
      line.number(paths);
    line.close_list();
  }
  line.close_list();
  line.open_list("bad");
  std::size_t named = 0;
  for (const sim::SenderStatus::Path& path : sender.paths) {
    if (path.state < core::EvState::kAssumedBad || ++named > StreamWriter::kMaxBadPaths) continue;
    line.open_list();
    line.number(path.plane);
    line.number(path.entropy);
    line.number(static_cast<std::int64_t>(path.state));
    line.close_list();
  }
  line.close_list();
  line.close_object();
}

std::int64_t flags_of(const PacketMove& move) {
  return (move.control ? 1 : 0) | (move.cut ? 2 : 0) | (move.marked ? 4 : 0) |
         (move.again ? 8 : 0) | static_cast<std::int64_t>(move.fate) << 4;
}

}  // namespace

std::string StreamWriter::header(const StreamInfo& info) {
  JsonLine line;
  line.open_object();
  line.number("view", kStreamVersion);
  line.text("source", info.source);
  line.text("title", info.title);
  line.truth("live", info.live);
  line.truth("acts", info.acts);
  line.number("flows", static_cast<std::int64_t>(info.flows));
  line.text("command", info.command);
  write_channels(line, "counters", info.counters);
  write_channels(line, "gauges", info.gauges);
  drawn_.write(line);
  line.close_object();
  ++lines_;
  return line.take();
}

void StreamWriter::write_lanes(JsonLine& line, const Frame& frame) {
  line.open_list("l");
  for (std::size_t i = 0; i < frame.lanes.size(); ++i) {
    const Lane& lane = frame.lanes[i];
    if (lane == told_[i]) continue;
    told_[i] = lane;
    line.number(static_cast<std::int64_t>(i));
    line.number(lane.load_permille);
    line.number(lane.queue_bytes);
    line.number(static_cast<std::int64_t>(lane.state));
  }
  line.close_list();
}

void StreamWriter::write_tallies(JsonLine& line, const Frame& frame) {
  if (frame.tallies == told_tallies_) return;
  line.open_list("e");
  for (std::size_t i = 0; i < frame.tallies.size(); ++i) {
    const LaneTally& tally = frame.tallies[i];
    if (tally == told_tallies_[i]) continue;
    told_tallies_[i] = tally;
    line.number(static_cast<std::int64_t>(i));
    for (const std::uint64_t count : {tally.marks, tally.trims, tally.drops})
      line.number(static_cast<std::int64_t>(count));
  }
  line.close_list();
}

std::string StreamWriter::frame(const Frame& frame) {
  MRC_ASSERT(frame.lanes.size() == drawn_.lanes);
  MRC_ASSERT(frame.tallies.size() == drawn_.lanes);
  const bool key = ++since_key_ > kKeyFrameEvery;
  if (key) {
    since_key_ = 1;
    told_.assign(frame.lanes.size(), Lane{});
    told_tallies_.assign(frame.tallies.size(), LaneTally{});
  }
  JsonLine line;
  line.open_object();
  line.number("t", frame.at);
  line.number("d", frame.span);
  if (key) line.number("k", 1);
  write_lanes(line, frame);
  write_tallies(line, frame);
  write_numbers(line, "g", frame.plane_bytes);
  write_numbers(line, "c", frame.counters);
  write_numbers(line, "u", frame.gauges);
  write_flows(line, frame.flows);
  line.number("n", static_cast<std::int64_t>(frame.flows_ended));
  write_faults(line, frame.faults);
  line.close_object();
  ++lines_;
  return line.take();
}

std::string StreamWriter::packets(std::span<const PacketMove> moves) {
  JsonLine line;
  line.open_object();
  const Nanoseconds base = moves.empty() ? 0 : moves.front().at;
  line.number("b", base);
  line.open_list("m");
  for (const PacketMove& move : moves) {
    line.number(move.at - base);
    line.number(index(move.lane));
    line.number(move.source);
    line.number(move.destination);
    line.number(move.bytes);
    line.number(flags_of(move));
  }
  line.close_list();
  line.close_object();
  ++lines_;
  return line.take();
}

std::string StreamWriter::senders(std::uint32_t host, Nanoseconds at,
                                  std::span<const sim::SenderStatus> senders) {
  JsonLine line;
  line.open_object();
  line.number("host", host);
  line.number("t", at);
  line.open_list("senders");
  for (const sim::SenderStatus& sender : senders)
    write_sender(line, sender);
  line.close_list();
  line.close_object();
  ++lines_;
  return line.take();
}

std::string StreamWriter::end(Nanoseconds at, std::string_view note) {
  JsonLine line;
  line.open_object();
  line.number("end", static_cast<std::int64_t>(lines_));
  line.number("t", at);
  line.text("note", note);
  line.close_object();
  return line.take();
}

}  // namespace mrc::view
