#include "sim/explain.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "sim/ideal.h"
#include "sim/result.h"

namespace mrc::sim {
namespace {

using fabric::NodeKind;

struct PartText {
  const char* name;
  const char* text;
};

constexpr std::array<PartText, kTimeParts> kTexts = {{
    {"sending", "sends"},
    {"sending_again", "sends again"},
    {"port_taken", "ports send for others"},
    {"window", "congestion window is closed"},
    {"held_up", "neither window nor port is in the way"},
    {"trimmed", "last packet was trimmed"},
    {"queue_full", "last packet found a queue full"},
    {"link_down", "last packet met a dead link"},
    {"random_loss", "last packet was lost at random"},
    {"no_route", "last packet had no route"},
    {"corrupted", "last packet was damaged"},
    {"not_taken", "last packet came out of order"},
    {"overtaken", "last packet was slow, its copy faster"},
    {"queue_t0_t1", "queue from T0 to T1"},
    {"queue_t1_t2", "queue from T1 to T2"},
    {"queue_t2_t1", "queue from T2 to T1"},
    {"queue_t1_t0", "queue from T1 to T0"},
    {"queue_t0_host", "queue from T0 to the host"},
    {"travel", "on links"},
    {"answer", "answer"},
}};

constexpr std::size_t index(TimePart part) { return static_cast<std::size_t>(part); }

TimePart part_of(LossCause cause) {
  return static_cast<TimePart>(index(TimePart::kTrimmed) + static_cast<std::size_t>(cause));
}

// Which of the queues a link has at its sending end, counted from kQueueT0T1.
unsigned queue_kind(const fabric::Link& link) {
  if (link.to.kind == NodeKind::kHost) return 4;
  const bool up = link.to.kind > link.from.kind;
  if (link.tier == fabric::LinkTier::kT1T2) return up ? 1 : 2;
  return up ? 0 : 3;
}

}  // namespace

const char* name_of(TimePart part) { return kTexts[index(part)].name; }
const char* describe(TimePart part) { return kTexts[index(part)].text; }

std::vector<TaskId> slowest_flows(const Workload& workload, const SimResult& result,
                                  const IdealTimes& ideal, unsigned count) {
  std::vector<std::pair<double, TaskId>> lost_us;
  for (TaskId id = 0; id < workload.tasks.size(); ++id) {
    const FlowResult& flow = result.flows[id];
    if (workload.tasks[id].kind != Task::Kind::kTransfer || flow.sent < 0 || flow.failed) continue;
    const double us = static_cast<double>(flow.sent - flow.posted) / 1e6;
    lost_us.emplace_back(ideal.us(workload.tasks[id].bytes) - us, id);  // the least first
  }
  const std::size_t kept = std::min<std::size_t>(count, lost_us.size());
  std::partial_sort(lost_us.begin(), lost_us.begin() + static_cast<std::ptrdiff_t>(kept),
                    lost_us.end());
  std::vector<TaskId> tasks;
  for (std::size_t i = 0; i < kept; ++i)
    tasks.push_back(lost_us[i].second);
  return tasks;
}

Explainer::Explainer(const fabric::Topology& topology, const Workload& workload,
                     PacketPool& packets, const std::vector<TaskId>& tasks)
    : topology_(&topology), workload_(&workload), packets_(&packets) {
  for (const TaskId task : tasks) {
    const Task& t = workload.tasks[task];
    flow_of_task_[task] = static_cast<std::uint32_t>(flows_.size());
    flows_.push_back({.task = task, .source = t.source, .bytes = t.bytes});
    hosts_[t.source].resize(topology.planes());
  }
}

// --- Senders ---

void Explainer::on_posted(Time now, TaskId task) {
  const auto found = flow_of_task_.find(task);
  if (found == flow_of_task_.end()) return;
  Flow& flow = flows_[found->second];
  flow.posted = flow.settled = now;
}

void Explainer::on_injected(Time now, Time free_at, unsigned plane, PacketId packet) {
  const std::uint32_t host = packets_->head(packet).source;
  const auto ports = hosts_.find(host);
  if (ports == hosts_.end()) return;
  // Until now the port did something else.
  for (Flow& flow : flows_)
    if (flow.source == host && flow.sends()) settle(flow, now);
  Port& port = ports->second[plane];
  port = {.busy_until = free_at};
  const PacketBody body = packets_->body(packet);
  if (body.payload_bytes == 0) return;
  const auto found = flow_of_task_.find(task_of_address(body.local_address));
  if (found == flow_of_task_.end()) return;
  Flow& flow = flows_[found->second];
  const std::uint64_t offset = body.local_address - task_address(flow.task);
  std::vector<Copy>& copies = flow.packets[offset];
  port.task = flow.task;
  port.use = copies.empty() ? TimePart::kSending : TimePart::kSendingAgain;
  if (copies.empty()) flow.bytes_sent += body.payload_bytes;
  under_way_[sim::index(packet)] = {
      .flow = found->second, .offset = offset, .copy = static_cast<std::uint32_t>(copies.size())};
  copies.push_back({.sent = now});
  if (flow.bytes_sent == flow.bytes && flow.last_left == kNotYet) flow.last_left = now;
}

void Explainer::on_pumped(Time now, std::uint32_t host, const Host& state) {
  for (Flow& flow : flows_) {
    if (flow.source != host || !flow.sends()) continue;
    settle(flow, now);
    const Task& task = workload_->tasks[flow.task];
    flow.window_closed = state.window_closed(task.destination, task.connection);
  }
}

// What the ports have done since the last look.
void Explainer::settle(Flow& flow, Time now) {
  for (const Port& port : hosts_[flow.source]) {
    const Time idle_from = std::clamp(port.busy_until, flow.settled, now);
    const bool own = port.use != TimePart::kPortTaken && port.task == flow.task;
    flow.parts[index(own ? port.use : TimePart::kPortTaken)] += idle_from - flow.settled;
    flow.parts[index(flow.window_closed ? TimePart::kWindow : TimePart::kHeldUp)] +=
        now - idle_from;
  }
  flow.settled = now;
}

void Explainer::on_completed(Time now, TaskId task) {
  const auto found = flow_of_task_.find(task);
  if (found != flow_of_task_.end()) flows_[found->second].completed = now;
}

// --- Packets ---

Explainer::Copy* Explainer::copy_of(PacketId packet) {
  const auto found = under_way_.find(sim::index(packet));
  if (found == under_way_.end()) return nullptr;
  const Place& place = found->second;
  return &flows_[place.flow].packets[place.offset][place.copy];
}

void Explainer::on_queued(Time now, PacketId packet) {
  if (Copy* copy = copy_of(packet)) copy->queued = now;
}

void Explainer::on_started(Time at, fabric::LinkId link, PacketId packet) {
  Copy* copy = copy_of(packet);
  if (copy == nullptr || copy->queued == kNotYet) return;
  copy->waited[queue_kind(topology_->describe(link))] += at - copy->queued;
  copy->queued = kNotYet;
}

void Explainer::on_lost(Time now, PacketId packet, LossCause cause) {
  Copy* copy = copy_of(packet);
  if (copy == nullptr) return;
  copy->ended = now;
  copy->fate = part_of(cause);
  under_way_.erase(sim::index(packet));
}

void Explainer::on_exchanged(Time now, PacketId arrival, PacketId queued) {
  const auto place_of = [this](PacketId packet) {
    const auto found = under_way_.find(sim::index(packet));
    return found == under_way_.end() ? std::pair{false, Place{}} : std::pair{true, found->second};
  };
  const auto put = [this](PacketId packet, const std::pair<bool, Place>& place) {
    if (place.first) {
      under_way_[sim::index(packet)] = place.second;
    } else {
      under_way_.erase(sim::index(packet));
    }
  };
  const auto first = place_of(arrival);
  const auto second = place_of(queued);
  put(arrival, second);
  put(queued, first);
  on_queued(now, queued);
}

void Explainer::on_arrived(Time now, PacketId packet) {
  arriving_ = nullptr;
  const auto found = under_way_.find(sim::index(packet));
  if (found == under_way_.end()) return;
  const Place place = found->second;
  under_way_.erase(found);
  Copy& copy = flows_[place.flow].packets[place.offset][place.copy];
  copy.ended = now;
  copy.fate = packets_->head(packet).corrupt ? TimePart::kCorrupted : TimePart::kNotTaken;
  arriving_ = &copy;
}

void Explainer::on_placed(Time, const Placed& placed) {
  const auto found = flow_of_task_.find(task_of_address(placed.to));
  if (found == flow_of_task_.end() || arriving_ == nullptr) return;
  Flow& flow = flows_[found->second];
  arriving_->placed = true;
  flow.last_placed = placed.to - task_address(flow.task);
}

// --- The account ---

void Explainer::add_tail(const Flow& flow, std::array<Time, kTimeParts>& parts) const {
  const std::vector<Copy>& copies = flow.packets.at(flow.last_placed);
  const auto ports = static_cast<Time>(topology_->planes());
  // What lies before the last packet left belongs to the first part.
  const auto add = [&](TimePart part, Time from, Time to) {
    from = std::max(from, flow.last_left);
    if (to > from) parts[index(part)] += ports * (to - from);
  };
  const auto taken =
      std::find_if(copies.begin(), copies.end(), [](const Copy& c) { return c.placed; });
  MRC_ASSERT(taken != copies.end());
  for (auto copy = copies.begin(); copy != taken; ++copy)
    add(copy->fate, copy->sent, std::next(copy)->sent);
  // The order of queues and links on the way does not matter for the sums; where the beginning of
  // the way belongs to the first part, links give way before queues.
  Time from = std::max(taken->sent, flow.last_left);
  for (unsigned kind = 0; kind < kQueueKinds; ++kind) {
    const Time until = std::min(from + taken->waited[kind], taken->ended);
    add(static_cast<TimePart>(index(TimePart::kQueueT0T1) + kind), from, until);
    from = std::max(from, until);
  }
  add(TimePart::kTravel, from, taken->ended);
  add(TimePart::kAnswer, taken->ended, flow.completed);
}

void Explainer::count_copies(const Flow& flow, Explanation& explanation) {
  explanation.packets = flow.packets.size();
  for (const auto& [offset, copies] : flow.packets) {
    explanation.copies += copies.size() - 1;
    for (const Copy& copy : copies)
      if (!copy.placed) ++explanation.lost[index(copy.fate)];
  }
}

std::vector<Explanation> Explainer::explain() const {
  std::vector<Explanation> explanations;
  for (const Flow& flow : flows_) {
    if (flow.completed == kNotYet || flow.last_left == kNotYet) continue;
    Explanation e{.task = flow.task};
    std::array<Time, kTimeParts> parts = flow.parts;
    add_tail(flow, parts);
    const double port_us = 1e6 * topology_->planes();
    for (std::size_t i = 0; i < kTimeParts; ++i)
      e.part_us[i] = static_cast<double>(parts[i]) / port_us;
    e.us = static_cast<double>(flow.completed - flow.posted) / 1e6;
    count_copies(flow, e);
    explanations.push_back(e);
  }
  return explanations;
}

}  // namespace mrc::sim
