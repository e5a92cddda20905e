#include "sim/simulation.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"
#include "fabric/input_error.h"
#include "sim/roce_network.h"

namespace mrc::sim {
namespace {

constexpr std::uint64_t kProgressEvents = 1 << 16;
// How many events ahead their data is fetched: first what an event names, then what that names.
constexpr std::size_t kFetchFar = 14;
constexpr std::size_t kFetchMiddle = 8;
constexpr std::size_t kFetchNear = 4;

struct CalendarSize {
  unsigned width_bits = 0;
  unsigned count_bits = 0;
};

// Buckets that hold a few hundred events each when every host sends at line rate, and enough of
// them for a full-size packet to cross the slowest link.
CalendarSize calendar_size(const SimConfig& config, const fabric::Topology& topology) {
  const fabric::TopologySpec& spec = topology.spec();
  const auto packet_ps = static_cast<double>(
      fabric::transmission_ps(full_packet_bytes(config), spec.host_link.bits_per_second));
  const double events_per_ps = spec.hosts * spec.planes * 2.0 * topology.longest_hops() / packet_ps;
  Time reach = 0;
  for (unsigned tier = 0; tier < fabric::kLinkTiers; ++tier) {
    const fabric::LinkClass& c = topology.link_class(static_cast<fabric::LinkTier>(tier));
    reach =
        std::max(reach, config.host_delay_ps + c.delay_ps +
                            fabric::transmission_ps(full_packet_bytes(config), c.bits_per_second));
  }
  CalendarSize size;
  const auto wanted_ps = static_cast<std::uint64_t>(256 / events_per_ps);
  size.width_bits = std::clamp<unsigned>(static_cast<unsigned>(std::bit_width(wanted_ps)), 4, 24);
  const auto slots = static_cast<std::uint64_t>(2 * reach) >> size.width_bits;
  size.count_bits = std::clamp<unsigned>(static_cast<unsigned>(std::bit_width(slots)), 8, 20);
  return size;
}

EventQueue make_queue(const SimConfig& config, const fabric::Topology& topology) {
  const CalendarSize size = calendar_size(config, topology);
  return EventQueue(size.width_bits, size.count_bits);
}

NetworkConfig network_config(const SimConfig& config, const fabric::Topology& topology) {
  NetworkConfig network;
  network.mode = config.forwarding;
  network.queue_shares = config.queue_shares;
  network.trimming = config.trimming;
  network.trim_victim = config.trim_victim;
  network.loss = config.loss;
  network.seed = config.seed;
  network.trimmed_bytes = trimmed_packet_bytes(config);
  network.host_delay_ps = config.host_delay_ps;
  network.plane_bdp_bytes = plane_bdp_bytes(config, topology);
  if (config.transport != Transport::kMrc) set_up_for_roce(config, topology, network);
  return network;
}

// Deadlines move with every answer. One that is far off is looked at again half-way, so that its
// moves leave no events behind.
Time next_look(Time now, Time deadline) {
  constexpr Time kNear = 1'000'000;
  const Time left = deadline - now;
  return left > kNear && deadline != kEndOfTime ? now + left / 2 : deadline;
}

// A step ends with the last of its tasks, and the next begins there. Stops at the first step that
// was not finished.
std::vector<double> step_times(const Workload& workload, const std::vector<FlowResult>& flows) {
  std::vector<Time> ends(workload.steps, 0);
  for (TaskId task = 0; task < workload.tasks.size() && workload.steps > 0; ++task) {
    Time& end = ends[workload.tasks[task].step];
    const bool finished = flows[task].sent >= 0 && !flows[task].failed;
    end = finished ? std::max(end, flows[task].sent) : kEndOfTime;
  }
  std::vector<double> step_us;
  Time before = 0;
  for (const Time end : ends) {
    if (end == kEndOfTime) break;
    step_us.push_back(static_cast<double>(end - before) / 1e6);
    before = end;
  }
  return step_us;
}

bool seals(const SimConfig& config) {
  return config.transport == Transport::kMrc && config.mrc.seal.on;
}

// Sorts, and adds up what belongs to one connection.
void merge(std::vector<PlannedConnection>& plan) {
  const auto key = [](const PlannedConnection& c) { return std::pair(c.peer, c.number); };
  std::sort(plan.begin(), plan.end(), [&](const PlannedConnection& a, const PlannedConnection& b) {
    return key(a) < key(b);
  });
  std::size_t kept = 0;
  for (const PlannedConnection& c : plan) {
    if (kept > 0 && key(plan[kept - 1]) == key(c)) {
      plan[kept - 1].sends += c.sends;
      plan[kept - 1].notifies += c.notifies;
    } else {
      plan[kept++] = c;
    }
  }
  plan.resize(kept);
}

// Where the shares of a task's flow are recorded.
unsigned sharing_flow(const Workload& workload, TaskId task) {
  return static_cast<unsigned>(task / (workload.tasks.size() / workload.share_flows));
}

}  // namespace

Simulation::Simulation(const SimConfig& config)
    : config_(config),
      topology_(config.topology),
      routing_(topology_),
      workload_(make_workload(config.workload, topology_)),
      events_(make_queue(config, topology_)),
      faults_(config.faults, topology_, config.end_ps, events_),
      memory_(workload_.tasks.size(), config.verify) {
  if (topology_.hosts() > 1U << PacketHead::kHostBits)
    throw fabric::InputError("topology: the simulator takes up to " +
                             std::to_string(1U << PacketHead::kHostBits) + " hosts");
  network_ =
      std::make_unique<Network>(routing_, network_config(config_, topology_), events_, packets_);
  result_.flows.resize(workload_.tasks.size());
  result_.series = Series(topology_.planes(), config.bin_ps);
  result_.shares = Series(workload_.share_flows, config.bin_ps);
  for (const Task& task : workload_.tasks)
    bytes_.total += task.bytes;
  build_hosts();
}

Simulation::~Simulation() = default;

void Simulation::build_hosts() {
  std::vector<std::vector<PlannedConnection>> planned(topology_.hosts());
  std::vector<std::uint32_t> degree(topology_.hosts());
  for (const Task& task : workload_.tasks) {
    if (task.kind != Task::Kind::kTransfer) continue;
    const std::uint32_t notifies = task.dependent_count > 0 ? 1 : 0;
    planned[task.source].push_back({task.destination, task.connection, 1, 0});
    planned[task.destination].push_back({task.source, task.connection, 0, notifies});
  }
  if (config_.transport != Transport::kMrc) {
    roce_world_ = std::make_unique<RoceWorld>(config_, routing_, packets_, *this);
  } else {
    mrc_world_ = std::make_unique<MrcWorld>(config_, routing_, packets_, *this);
    mrc_world_->hosts.resize(topology_.hosts());
  }
  hosts_.resize(topology_.hosts());
  for (std::uint32_t host = 0; host < topology_.hosts(); ++host) {
    std::vector<PlannedConnection>& plan = planned[host];
    merge(plan);
    for (const PlannedConnection& c : plan)
      degree[c.peer] += c.sends > 0 && c.number == 0 ? 1 : 0;
    hosts_[host].host = build_host(host, plan);
    plan = {};
  }
  if (mrc_world_) mrc_world_->incast_degree = std::move(degree);
}

std::unique_ptr<Host> Simulation::build_host(std::uint32_t host,
                                             const std::vector<PlannedConnection>& plan) {
  if (roce_world_) {
    auto built = std::make_unique<RoceHost>(*roce_world_, host, plan);
    roce_world_->hosts[host] = built.get();
    return built;
  }
  auto built = std::make_unique<MrcHost>(*mrc_world_, host, plan);
  mrc_world_->hosts[host] = built.get();
  return built;
}

void Simulation::sample(Time first, Sampler sampler) {
  observers_.sample = std::move(sampler);
  events_.push(Event(first, EventKind::kSample, 0));
}

void Simulation::follow(const std::vector<TaskId>& tasks) {
  observers_.explainer = std::make_unique<Explainer>(topology_, workload_, packets_, tasks);
  network_->watch(*observers_.explainer);
}

std::vector<Explanation> Simulation::explain() const {
  return observers_.explainer ? observers_.explainer->explain() : std::vector<Explanation>{};
}

SimResult Simulation::run(const ProgressFunction& progress) {
  advance(config_.end_ps, progress);
  return finish();
}

bool Simulation::advance(Time until, const ProgressFunction& progress) {
  if (phase_ == Phase::kOver) return false;
  if (phase_ == Phase::kFresh) {
    for (TaskId task = 0; task < workload_.tasks.size(); ++task)
      if (workload_.tasks[task].waits == 0) start_task(0, task);
  }
  if (until < config_.end_ps) events_.push(Event(std::max(until, now_), EventKind::kPause, 0));
  phase_ = Phase::kUnderWay;
  while (tasks_done_ < workload_.tasks.size() && !events_.empty() && !stopped_) {
    const Event event = events_.pop();
    now_ = event.time;
    if (now_ > config_.end_ps) break;
    prefetch();
    handle(event);
    if (++result_.events % kProgressEvents == 0 && progress) {
      const double share = bytes_.total == 0 ? 1
                                             : static_cast<double>(bytes_.placed) /
                                                   static_cast<double>(bytes_.total);
      progress({share, now_, result_.events, network_->counters().packet_hops});
    }
    if (phase_ == Phase::kPaused) return true;
  }
  phase_ = Phase::kOver;
  return false;
}

void Simulation::prefetch() const {
  if (const Event* far = events_.upcoming(kFetchFar)) {
    if (far->kind() == EventKind::kArrival) network_->prefetch(*far);
    if (far->kind() == EventKind::kHostWake) __builtin_prefetch(&hosts_[far->subject()]);
  }
  if (const Event* middle = events_.upcoming(kFetchMiddle)) {
    if (middle->kind() == EventKind::kArrival) {
      const fabric::Node& to = network_->link(fabric::LinkId{middle->subject()}).to;
      if (to.kind == fabric::NodeKind::kHost) {
        __builtin_prefetch(&hosts_[to.index]);
        packets_.prefetch_body(PacketId{middle->payload});
      } else {
        network_->prefetch_next(*middle);
      }
    } else if (middle->kind() == EventKind::kHostWake) {
      hosts_[middle->subject()].prefetch();
    }
  }
  if (const Event* near = events_.upcoming(kFetchNear)) {
    if (near->kind() == EventKind::kArrival) {
      const fabric::Node& to = network_->link(fabric::LinkId{near->subject()}).to;
      if (to.kind == fabric::NodeKind::kHost) hosts_[to.index].prefetch();
    }
  }
}

void Simulation::handle(const Event& event) {
  switch (event.kind()) {
    case EventKind::kArrival:
      return on_arrival(event);
    case EventKind::kHostWake: {
      HostSlot& slot = hosts_[event.subject()];
      if (slot.wake_at == event.time) slot.wake_at = kEndOfTime;
      return pump(event.time, event.subject());
    }
    case EventKind::kHostTimer: {
      HostSlot& slot = hosts_[event.subject()];
      if (slot.timer_at == event.time) slot.timer_at = kEndOfTime;
      if (slot.host->next_deadline() <= event.time) slot.host->on_timer(event.time);
      return pump(event.time, event.subject());
    }
    case EventKind::kTask: {
      const TaskId task = event.subject();
      if (workload_.tasks[task].kind == Task::Kind::kCompute) return finish_task(event.time, task);
      return post_task(event.time, task);
    }
    case EventKind::kFault:
      return on_fault(event.time, event.subject());
    case EventKind::kCarrier:
      return on_carrier(event.time, event.subject() / topology_.planes(),
                        event.subject() % topology_.planes());
    case EventKind::kLinkFree:
      return network_->on_link_free(event.time, fabric::LinkId{event.subject()});
    case EventKind::kLinkPause:
    case EventKind::kLinkResume:
      return on_pause(event);
    case EventKind::kSample:
      --result_.events;  // Looking is no part of the run.
      events_.push(Event(observers_.sample(event.time), EventKind::kSample, 0));
      return;
    case EventKind::kPause:
      --result_.events;
      if (!events_.empty()) phase_ = Phase::kPaused;
      return;
  }
}

void Simulation::on_arrival(const Event& event) {
  const PacketId packet{event.payload};
  if (!network_->arrive(event.time, packet)) return;
  const PacketHead& head = packets_.head(packet);
  const std::uint32_t host = head.destination;
  const unsigned plane = network_->link(head.link).to.plane;
  note(static_cast<std::uint64_t>(event.time) * 31 + event.subject());
  note(std::uint64_t{head.entropy} << 32 | head.bytes << 1 | (head.congestion_experienced ? 1 : 0));
  if (seals(config_)) charge_seal(event.time, hosts_[host], packet);
  if (observers_.explainer) observers_.explainer->on_arrived(event.time, packet);
  hosts_[host].host->on_packet(event.time, packet, plane);
  packets_.give_back(packet);
  pump(event.time, host);
}

void Simulation::on_pause(const Event& event) {
  const fabric::LinkId link{event.subject()};
  const bool paused = event.kind() == EventKind::kLinkPause;
  if (!network_->on_pause(event.time, link, paused)) return;
  const fabric::Node host = topology_.describe(link).from;
  hosts_[host.index].host->set_paused(event.time, host.plane, paused);
  pump(event.time, host.index);
}

void Simulation::on_fault(Time now, std::uint32_t number) {
  const fabric::FaultAction* pending = faults_.action(number);
  if (pending == nullptr) {
    --result_.events;  // A run whose plan had said so from the start would not have it.
    return;
  }
  const fabric::FaultAction& action = *pending;
  network_->apply(now, action);
  if (action.kind != fabric::FaultKind::kDown) return;
  if (action.begins) last_down_ = now;
  if (!faults_.plan()[action.fault].link_state_visible) return;
  const fabric::Link link = topology_.describe(action.link);
  for (const fabric::Node& end : {link.from, link.to}) {
    if (end.kind != fabric::NodeKind::kHost) continue;
    events_.push(Event(now + config_.carrier_detect_ps, EventKind::kCarrier,
                       end.index * topology_.planes() + end.plane));
  }
}

void Simulation::on_carrier(Time now, std::uint32_t host, unsigned plane) {
  const bool up = !network_->is_down(topology_.host_up(plane, host)) &&
                  !network_->is_down(topology_.host_down(plane, host));
  hosts_[host].host->set_port_up(now, plane, up);
  pump(now, host);
}

void Simulation::pump(Time now, std::uint32_t host) {
  HostSlot& slot = hosts_[host];
  PortMask free;
  for (unsigned plane = 0; plane < topology_.planes(); ++plane)
    if (network_->can_send(now, plane, host))
      free = free.with(PortId{static_cast<std::uint8_t>(plane + 1)});
  Outgoing out;
  while (!free.empty() && slot.sealing_until <= now && slot.host->next_packet(now, free, out)) {
    if (seals(config_)) charge_seal(now, slot, out.packet);
    inject(now, out);
    free = free.without(PortId{static_cast<std::uint8_t>(out.plane + 1)});
  }
  if (observers_.explainer) observers_.explainer->on_pumped(now, host, *slot.host);
  const bool seals_still = slot.sealing_until > now;
  if (seals_still || slot.host->wants_to_send()) {
    Time next = seals_still ? slot.sealing_until : kEndOfTime;
    for (unsigned plane = 0; plane < topology_.planes() && !seals_still; ++plane) {
      const Time at = network_->free_at(plane, host);
      if (at > now) next = std::min(next, at);
    }
    if (next < slot.wake_at) {
      slot.wake_at = next;
      events_.push(Event(next, EventKind::kHostWake, host));
    }
  }
  const Time timer = next_look(now, std::max(slot.host->next_deadline(), now + 1));
  if (timer < slot.timer_at) {
    slot.timer_at = timer;
    events_.push(Event(timer, EventKind::kHostTimer, host));
  }
}

// A host takes up nothing to send while it seals and opens what it has. What arrives is in its
// memory at once; the answers wait.
void Simulation::charge_seal(Time now, HostSlot& slot, PacketId packet) {
  const SealCost& cost = config_.mrc.seal;
  const bool trimmed = packets_.head(packet).trim != PacketTrim::kWhole;
  const Time fixed = Time{trimmed ? cost.trimmed_ns : cost.packet_ns} * fabric::kPicosecondsPerNs;
  const Time bytes = trimmed ? 0 : Time{packets_.body(packet).payload_bytes} * cost.byte_ps;
  slot.sealing_until =
      std::max(now, slot.sealing_until) + (fixed + bytes) / std::max(1U, cost.processors);
}

void Simulation::inject(Time now, const Outgoing& out) {
  if (network_->any_down() && !out.probe) {
    const PacketHead& head = packets_.head(out.packet);
    if (head.priority != PacketClass::kControl &&
        network_->path_is_dead(head.source, head.destination, out.path))
      result_.recovery_us =
          std::max(result_.recovery_us, static_cast<double>(now - last_down_) / 1e6);
  }
  network_->send(now, out.plane, out.packet);
  if (observers_.explainer) {
    const std::uint32_t host = packets_.head(out.packet).source;
    observers_.explainer->on_injected(now, network_->free_at(out.plane, host), out.plane,
                                      out.packet);
  }
}

void Simulation::start_task(Time now, TaskId task) {
  const Task& t = workload_.tasks[task];
  if (t.kind == Task::Kind::kCompute || t.delay > 0)
    events_.push(Event(now + t.delay, EventKind::kTask, task));
  else
    post_task(now, task);
}

void Simulation::post_task(Time now, TaskId task) {
  const Task& t = workload_.tasks[task];
  result_.flows[task].posted = now;
  if (observers_.explainer) observers_.explainer->on_posted(now, task);
  hosts_[t.source].host->post(now, {.task = task,
                                    .destination = t.destination,
                                    .connection = t.connection,
                                    .bytes = t.bytes,
                                    .notify = t.dependent_count > 0});
  pump(now, t.source);
}

void Simulation::on_sent(Time now, TaskId task, bool ok) {
  FlowResult& flow = result_.flows[task];
  flow.sent = now;
  flow.failed = !ok;
  if (observers_.explainer && ok) observers_.explainer->on_completed(now, task);
  ++(ok ? result_.completed : result_.failed);
  ++tasks_done_;
  if (ok) memory_.check(task, workload_.tasks[task].bytes);
  note(static_cast<std::uint64_t>(now) ^ task);
}

void Simulation::on_received(Time now, TaskId task) {
  result_.flows[task].received = now;
  const Task& t = workload_.tasks[task];
  for (std::uint32_t i = 0; i < t.dependent_count; ++i) {
    const TaskId later = workload_.dependents[t.first_dependent + i];
    if (--workload_.tasks[later].waits == 0)
      events_.push(Event(now + workload_.tasks[later].delay, EventKind::kTask, later));
  }
}

void Simulation::finish_task(Time now, TaskId task) {
  ++tasks_done_;
  result_.flows[task].posted = now - workload_.tasks[task].delay;
  result_.flows[task].sent = now;
  on_received(now, task);
}

void Simulation::on_placed(Time now, const Placed& placed) {
  const TaskId task = task_of_address(placed.to);
  MRC_ASSERT(task < workload_.tasks.size());
  memory_.place(placed, workload_.tasks[task].bytes);
  if (observers_.explainer) observers_.explainer->on_placed(now, placed);
  bytes_.placed += placed.bytes;
  result_.series.add(now, placed.plane, placed.bytes);
  if (workload_.share_flows > 0)
    result_.shares.add(now, sharing_flow(workload_, task), placed.bytes);
}

void Simulation::note(std::uint64_t value) {
  result_.trace_hash = (std::rotl(result_.trace_hash, 5) ^ value) * 0x9E37'79B9'7F4A'7C15;
}

SimResult Simulation::finish() {
  result_.finished_at = now_;
  result_.complete = tasks_done_ == workload_.tasks.size() && result_.failed == 0;
  result_.bytes_wrong = memory_.wrong();
  result_.network = network_->counters();
  result_.step_us = step_times(workload_, result_.flows);
  for (const HostSlot& slot : hosts_)
    result_.hosts.add(slot.host->totals());
  const NetworkCounters& n = result_.network;
  for (const std::uint64_t counter : {n.packet_hops, n.marks, n.trims, n.drops(), n.pauses,
                                      result_.hosts.retransmits, result_.hosts.probes})
    note(counter);
  return std::move(result_);
}

}  // namespace mrc::sim
