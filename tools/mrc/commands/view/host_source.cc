#include "commands/view/host_source.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "commands/view/report_line.h"
#include "os/clock.h"

namespace mrc::tool::view_tool {
namespace {

using node::TelemetryBody;
using Json = nlohmann::ordered_json;

// Of a port whose rate nobody has configured, as on loopback: only how dark its cable is depends
// on it.
constexpr std::uint64_t kSomeBitsPerSecond = 10'000'000'000;

enum Counter : std::uint8_t {
  kSentPackets,
  kReceivedPackets,
  kTrimmed,
  kOvertaken,
  kLate,
  kTimedOut,
  kHedged,
  kResent,
  kMarks,
  kDrops,
  kCompleted,
  kFailed,
  kCounters
};
enum Gauge : std::uint8_t { kGood, kBad, kDenied, kRoundTrip, kShown, kLeftOut, kGauges };

view::StreamInfo info() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return {.source = "host",
          .title = fmt::format("processes of {}", name.data()),
          .live = true,
          .counters = {{"packets", "sent"},
                       {"packets", "received"},
                       {"resends", "trimmed"},
                       {"resends", "overtaken"},
                       {"resends", "late"},
                       {"resends", "time-out"},
                       {"resends", "hedged"},
                       {"resends", "all"},
                       {"answers", "marks"},
                       {"drops", "all"},
                       {"messages", "completed"},
                       {"messages", "failed"}},
          .gauges = {{"paths", "good"},
                     {"paths", "bad"},
                     {"paths", "denied"},
                     {"round trip", "mean, ns"},
                     {"devices", "shown"},
                     {"devices", "left out"}}};
}

void write_geometry(view::JsonLine& line) {
  line.open_object("geometry");
  line.number("planes", kMaxPorts);
  line.open_list("rows");
  for (const auto& [kind, count] :
       {std::pair{"device", HostSource::kMaxDevices}, {"network", 1U}}) {
    line.open_object();
    line.text("kind", kind);
    line.number("count", count);
    line.number("fold", 1);
    line.close_object();
  }
  line.close_list();
  line.open_list("cables");
  for (std::uint32_t device = 0; device < HostSource::kMaxDevices; ++device) {
    line.open_list();
    line.number(device);
    line.number(HostSource::kMaxDevices);
    line.number(1);
    line.close_list();
  }
  line.close_list();
  line.close_object();
}

constexpr std::uint32_t kLanes = 2 * kMaxPorts * HostSource::kMaxDevices;

std::uint64_t growth(std::uint64_t before, std::uint64_t now) {
  return now >= before ? now - before : 0;
}

std::uint64_t count(const node::TelemetryPathCounts& paths, core::EvState state) {
  return paths[static_cast<std::size_t>(state)];
}

std::uint16_t permille(double bytes_per_second, std::uint64_t bits_per_second) {
  const double share = 8'000 * bytes_per_second / static_cast<double>(bits_per_second);
  return static_cast<std::uint16_t>(std::min(1'000.0, share));
}

bool is_down(const node::TelemetryPlane& plane) { return plane.link_up == 0 || plane.enabled == 0; }

view::LaneState state_of(const node::TelemetryPlane& plane) {
  if (is_down(plane)) return view::LaneState::kDown;
  if (plane.silent > 0) return view::LaneState::kBlackHole;
  return count(plane.paths, core::EvState::kAssumedBad) > 0 ? view::LaneState::kLossy
                                                            : view::LaneState::kHealthy;
}

}  // namespace

HostSource::HostSource(std::string directory, view::LineSink sink)
    : directory_(std::move(directory)),
      sink_(std::move(sink)),
      writer_({.lanes = kLanes, .write = write_geometry}),
      started_ns_(os::monotonic_now()),
      told_(kMaxDevices) {
  frame_.lanes.resize(kLanes);
  frame_.tallies.resize(kLanes);
  frame_.plane_bytes.resize(kMaxPorts);
  frame_.counters.resize(kCounters);
  frame_.gauges.resize(kGauges);
  before_ = node::read_telemetry({.directory = directory_});
  sink_(writer_.header(info()));
}

void HostSource::look() {
  node::TelemetryListing now = node::read_telemetry({.directory = directory_});
  fill(now);
  sink_(writer_.frame(frame_));
  before_ = std::move(now);
  if (looks_++ % kLooksPerReport == 0) report(before_);
}

std::optional<std::uint32_t> HostSource::slot_of(const std::string& path) {
  std::optional<std::uint32_t> free;
  for (std::uint32_t i = 0; i < kMaxDevices; ++i) {
    if (slots_[i].path == path) return i;
    if (!free && slots_[i].path.empty()) free = i;
  }
  return free;
}

void HostSource::fill(const node::TelemetryListing& now) {
  const view::Nanoseconds at = os::monotonic_now() - started_ns_;
  frame_.span = at - frame_.at;
  frame_.at = at;
  std::fill(frame_.lanes.begin(), frame_.lanes.end(), view::Lane{});
  std::fill(frame_.tallies.begin(), frame_.tallies.end(), view::LaneTally{});
  std::fill(frame_.plane_bytes.begin(), frame_.plane_bytes.end(), 0);
  std::fill(frame_.gauges.begin(), frame_.gauges.end(), 0);
  frame_.faults.clear();
  round_trips_ = round_trip_sum_ns_ = 0;
  for (Slot& slot : slots_)
    slot.seen = false;
  for (const stat::Change& change : stat::changes_of(before_, now)) {
    if (!change.now->alive) continue;
    add_counters(change);
    add_gauges(change);
    const auto number = slot_of(change.now->path);
    ++frame_.gauges[number ? kShown : kLeftOut];
    if (number) add_device(*number, change);
  }
  if (round_trips_ > 0) frame_.gauges[kRoundTrip] = round_trip_sum_ns_ / round_trips_;
  for (Slot& slot : slots_)
    if (!slot.seen) slot = {};
}

// A process that moves nothing writes its page once a second: until then its rates are those of
// the time before.
void HostSource::add_device(std::uint32_t number, const stat::Change& change) {
  const TelemetryBody& body = change.now->body;
  Slot& slot = slots_[number];
  slot.path = change.now->path;
  slot.seen = true;
  if (body.written_unix_ns != change.before->written_unix_ns || slot.rates.planes.empty())
    slot.rates = node::telemetry_rates(*change.before, body);
  add_planes(number, body);
}

void HostSource::add_planes(std::uint32_t number, const TelemetryBody& body) {
  Slot& slot = slots_[number];
  const std::uint64_t rate =
      body.port_bits_per_second != 0 ? body.port_bits_per_second : kSomeBitsPerSecond;
  for (std::uint32_t plane = 0; plane < body.plane_count; ++plane) {
    const node::TelemetryPlane& told = body.planes[plane];
    const node::TelemetryPlaneRates rates =
        plane < slot.rates.planes.size() ? slot.rates.planes[plane] : node::TelemetryPlaneRates{};
    const std::uint32_t up = 2 * (plane * kMaxDevices + number);
    frame_.lanes[up] = {.load_permille = permille(rates.sent_bytes, rate), .state = state_of(told)};
    frame_.lanes[up + 1] = {.load_permille = permille(rates.received_bytes, rate),
                            .state = state_of(told)};
    frame_.tallies[up] = {.marks = told.marked, .drops = told.lost};
    frame_.plane_bytes[plane] +=
        static_cast<std::uint64_t>(rates.received_bytes * static_cast<double>(frame_.span) / 1e9);
    const std::uint32_t bit = std::uint32_t{1} << plane;
    const bool was_down = (slot.down & bit) != 0;
    if (was_down == is_down(told)) continue;
    slot.down ^= bit;
    frame_.faults.push_back(
        {.at = frame_.at,
         .begins = !was_down,
         .text = fmt::format("{} ({}) {} plane {} down", body.process.name.text(), body.process.pid,
                             body.device.text(), told.plane())});
  }
}

void HostSource::add_counters(const stat::Change& change) {
  const TelemetryBody& before = *change.before;
  const TelemetryBody& now = change.now->body;
  const auto add = [&](Counter counter, std::uint64_t earlier, std::uint64_t later) {
    frame_.counters[counter] += growth(earlier, later);
  };
  const core::QpCounters& then = before.traffic;
  const core::QpCounters& sum = now.traffic;
  add(kSentPackets, then.data_sent, sum.data_sent);
  add(kReceivedPackets, then.data_received, sum.data_received);
  add(kTrimmed, then.trimmed, sum.trimmed);
  add(kOvertaken, then.lost_by_path_order, sum.lost_by_path_order);
  add(kLate, then.lost_by_time, sum.lost_by_time);
  add(kTimedOut, then.lost_by_timeout, sum.lost_by_timeout);
  add(kHedged, then.hedged, sum.hedged);
  add(kResent, then.retransmitted, sum.retransmitted);
  add(kMarks, then.marked, sum.marked);
  // The first reason is that there was none.
  for (std::size_t i = 1; i < now.drops.size(); ++i)
    add(kDrops, before.drops[i], now.drops[i]);
  add(kCompleted, then.messages_completed, sum.messages_completed);
  add(kFailed, before.failed_messages, now.failed_messages);
}

void HostSource::add_gauges(const stat::Change& change) {
  const TelemetryBody& before = *change.before;
  const TelemetryBody& now = change.now->body;
  for (std::uint32_t i = 0; i < now.plane_count; ++i) {
    const node::TelemetryPathCounts& paths = now.planes[i].paths;
    frame_.gauges[kGood] += count(paths, core::EvState::kGood) + count(paths, core::EvState::kSkip);
    frame_.gauges[kBad] += count(paths, core::EvState::kAssumedBad);
    frame_.gauges[kDenied] += count(paths, core::EvState::kDenied);
  }
  round_trips_ += growth(before.round_trips.count(), now.round_trips.count());
  round_trip_sum_ns_ += growth(before.round_trips.sum_ns, now.round_trips.sum_ns);
}

void HostSource::report(const node::TelemetryListing& now) {
  std::vector<bool> told(kMaxDevices);
  for (const stat::Change& change : stat::changes_of(reported_, now)) {
    if (!change.now->alive) continue;
    const auto number = slot_of(change.now->path);
    if (!number || slots_[*number].path.empty()) continue;
    sink_(report_line(*number, frame_.at, Json::array({short_report(change)})));
    told[*number] = true;
  }
  for (std::uint32_t i = 0; i < kMaxDevices; ++i)
    if (told_[i] && !told[i]) sink_(report_line(i, frame_.at, Json::array()));
  told_ = std::move(told);
  reported_ = now;
}

}  // namespace mrc::tool::view_tool
