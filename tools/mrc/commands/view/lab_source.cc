#include "commands/view/lab_source.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "lab/forwarding.h"
#include "launch/lab_status.h"

namespace mrc::tool::view_tool {

namespace {

// Lines for people: "silent" or "gone", and what is the matter.
std::string notice(std::string_view kind, std::string_view text) {
  view::JsonLine line;
  line.open_object();
  line.text(kind, text);
  line.close_object();
  return line.take();
}

}  // namespace

LabSource::LabSource(const std::string& name, std::shared_ptr<lab::ControlClient> client,
                     view::LineSink sink)
    : client_(std::move(client)), sink_(std::move(sink)), telemetry_(sink_) {
  const LabLinks now = ask_links(*client_);
  const fabric::Topology topology(*now.fabric);
  geometry_.emplace(topology);
  writer_.emplace(*geometry_);
  link_bytes_.resize(topology.link_count());
  view::StreamInfo info{.source = "lab",
                        .title = "lab " + name,
                        .live = true,
                        .acts = true,
                        .counters = {{"switches", "marks"}, {"switches", "trims"}},
                        .gauges = {{"links", "with a fault"}}};
  info.counters.push_back({"drops", "damaged"});
  for (unsigned cause = 0; cause < lab::kDropCauses; ++cause)
    info.counters.push_back({"drops", lab::drop_cause_name(static_cast<lab::DropCause>(cause))});
  sink_(writer_->header(info));
  frame_.lanes.resize(geometry_->lane_count());
  frame_.tallies.resize(geometry_->lane_count());
  frame_.plane_bytes.resize(geometry_->planes());
  for (const LabLinks::Link& link : now.links)
    if (link.number < link_bytes_.size()) link_bytes_[link.number] = link.bytes;
  frame_.at = now.time_ps / fabric::kPicosecondsPerNs;
  client_->when_slow(
      [tell = sink_] { tell(notice("silent", "the lab does not answer; what is shown is old")); });
}

bool LabSource::look() {
  try {
    fill(ask_links(*client_));
    sink_(writer_->frame(frame_));
    if (looks_++ % kLooksPerTelemetry == 0)
      telemetry_.look(frame_.at, ask_status(*client_).programs);
  } catch (const std::exception& error) {
    sink_(notice("gone",
                 std::string(error.what()) + "; once it is up (`mrc lab up`), it is here again"));
    return false;
  }
  return true;
}

void LabSource::count(const LabLinks& now) {
  std::fill(frame_.tallies.begin(), frame_.tallies.end(), view::LaneTally{});
  for (const LabLinks::Count& count : now.counts) {
    if (count.number >= link_bytes_.size()) continue;
    const view::LaneId lane = geometry_->lane_of(fabric::LinkId{count.number});
    view::LaneTally& tally = frame_.tallies[view::index(lane)];
    tally.marks += count.marks;
    tally.trims += count.trims;
    tally.drops += count.drops;
  }
}

void LabSource::fill(const LabLinks& now) {
  const fabric::Topology& topology = geometry_->topology();
  const view::Nanoseconds at = now.time_ps / fabric::kPicosecondsPerNs;
  frame_.span = at - frame_.at;
  frame_.at = at;
  count(now);
  for (view::Lane& lane : frame_.lanes)
    lane = {};
  std::fill(frame_.plane_bytes.begin(), frame_.plane_bytes.end(), 0);
  std::vector<std::uint64_t> carried(frame_.lanes.size());
  std::vector<std::uint32_t> down(frame_.lanes.size());
  std::uint64_t ill = 0;
  for (const LabLinks::Link& link : now.links) {
    if (link.number >= link_bytes_.size()) continue;
    const fabric::LinkId id{link.number};
    const std::uint32_t number = view::index(geometry_->lane_of(id));
    view::Lane& lane = frame_.lanes[number];
    const std::uint64_t grown = link.bytes - std::exchange(link_bytes_[link.number], link.bytes);
    carried[number] += grown;
    const fabric::Node to = topology.describe(id).to;
    if (to.kind == fabric::NodeKind::kHost) frame_.plane_bytes[to.plane] += grown;
    lane.queue_bytes += static_cast<std::uint32_t>(link.queued);
    const view::LaneState state = view::state_of(link.condition);
    ill += state == view::LaneState::kHealthy ? 0 : 1;
    down[number] += state == view::LaneState::kDown ? 1 : 0;
    lane.state = std::max(lane.state, state);
  }
  for (std::uint32_t i = 0; i < frame_.lanes.size(); ++i)
    view::settle(frame_.lanes[i], *geometry_, view::LaneId{i},
                 {.bytes = carried[i], .links_down = down[i], .span = frame_.span});
  frame_.counters = now.sums;
  frame_.gauges = {ill};
  frame_.faults.clear();
  for (const std::string& fault : now.faults)
    if (!faults_.contains(fault))
      frame_.faults.push_back({.at = at, .begins = true, .text = fault});
  for (const std::string& fault : faults_)
    if (!now.faults.contains(fault))
      frame_.faults.push_back({.at = at, .begins = false, .text = fault});
  faults_ = now.faults;
}

PageServer::Outcome LabSource::act(const view::Deed& deed) {
  const view::LabOrder order = view::lab_order(deed);
  if (order.verb.empty()) return {.ok = false, .text = "there is no '" + deed.verb + "' like that"};
  const lab::Reply reply = client_->ask({order.verb, order.argument});
  if (!reply.ok) return {.ok = false, .text = reply.text};
  return {.ok = true, .text = deed.verb + " " + deed.target};
}

}  // namespace mrc::tool::view_tool
