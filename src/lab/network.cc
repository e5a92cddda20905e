#include "lab/network.h"

#include <algorithm>
#include <numeric>

namespace mrc::lab {
namespace {

constexpr std::uint8_t kInner = 0;
constexpr std::uint8_t kToHost = 1;
constexpr std::uint8_t kOfHost = 2;
// So much a host's port takes from its sockets ahead of time: enough for control frames to pass
// data, and for the wire not to run dry while the process is away for a moment.
constexpr Picoseconds kReadAheadPs = 200'000'000;
constexpr std::uint32_t kMinReadAheadBytes = 64 << 10;

std::uint64_t bytes_in(Picoseconds time_ps, std::uint64_t bits_per_second) {
  return static_cast<std::uint64_t>(time_ps / 1'000'000) * (bits_per_second / 1'000) / 8'000;
}

}  // namespace

void LinkCounters::add(const LinkCounters& other) {
  frames += other.frames;
  bytes += other.bytes;
  marks += other.marks;
  trims += other.trims;
  corrupted += other.corrupted;
  for (unsigned i = 0; i < kDropCauses; ++i)
    drops[i] += other.drops[i];
}

std::uint64_t LinkCounters::all_drops() const {
  return std::accumulate(drops.begin(), drops.end(), std::uint64_t{0});
}

Network::Network(const fabric::Routing& routing, const NetworkOptions& options, FramePool& pool,
                 HostSide& hosts)
    : routing_(&routing),
      pool_(&pool),
      hosts_(&hosts),
      tunnels_(routing),
      format_(options.format),
      random_(options.seed),
      counters_(routing.topology().link_count()) {
  set_up_policies(options);
  set_up_links();
}

void Network::set_up_policies(const NetworkOptions& options) {
  const fabric::Topology& t = topology();
  const std::uint64_t rate = t.spec().host_link.bits_per_second;
  const std::uint64_t bdp = fabric::plane_bdp_bytes(t, options.host_latency_ps);
  policies_[kInner] = make_queue_policy(options.shares, bdp, options.trims, /*faces_host=*/false);
  policies_[kToHost] = make_queue_policy(options.shares, bdp, options.trims, /*faces_host=*/true);
  // A host waits for its port instead of losing what it sends.
  read_ahead_bytes_ = static_cast<std::uint32_t>(
      std::max<std::uint64_t>(bytes_in(kReadAheadPs, rate), kMinReadAheadBytes));
  policies_[kOfHost] = {.data_capacity_bytes = 0x7FFF'FFFF,
                        .control_capacity_bytes = 0x7FFF'FFFF,
                        .trims = false,
                        .marks = false};
}

void Network::set_up_links() {
  const fabric::Topology& t = topology();
  links_.resize(t.link_count());
  for (std::uint32_t i = 0; i < t.link_count(); ++i) {
    const fabric::Link link = t.describe(LinkId{i});
    const fabric::LinkClass& of_tier = t.link_class(link.tier);
    LinkState& l = links_[i];
    l.delay_ps = of_tier.delay_ps;
    l.bits_per_second = of_tier.bits_per_second;
    l.to = link.to;
    if (link.to.kind == fabric::NodeKind::kHost) l.policy = kToHost;
    if (link.from.kind == fabric::NodeKind::kHost) l.policy = kOfHost;
  }
}

// --- Frames ---

void Network::send(Picoseconds now, Picoseconds earliest, unsigned plane, unsigned host,
                   FrameId frame) {
  const LinkId link = topology().host_up(plane, host);
  DropCause cause{};
  if (!enter_tunnel(*routing_, tunnels_, plane, host, *pool_, frame, cause)) {
    drop(link, cause, frame);
    return;
  }
  enqueue(now, std::min(earliest, now), link, frame);
}

std::uint32_t Network::waiting_bytes(unsigned plane, unsigned host) const {
  const LinkState& l = links_[index(topology().host_up(plane, host))];
  return l.data.bytes + l.control.bytes;
}

void Network::run(Picoseconds now) {
  while (!arrivals_.empty() && arrivals_.front().at <= now) {
    std::pop_heap(arrivals_.begin(), arrivals_.end());
    const Arrival arrival = arrivals_.back();
    arrivals_.pop_back();
    arrive(arrival);
  }
}

Picoseconds Network::next_event() const {
  return arrivals_.empty() ? fabric::kForever : arrivals_.front().at;
}

void Network::arrive(const Arrival& arrival) {
  advance(arrival.at, arrival.link);
  const LinkState& l = links_[index(arrival.link)];
  if (l.faulty && !faults_.of(arrival.link).delivers(arrival.at)) {
    drop(arrival.link, DropCause::kDown, arrival.frame);
    return;
  }
  ++hops_;
  if (l.to.kind == fabric::NodeKind::kHost) {
    if (!hosts_->deliver(l.to.plane, l.to.index, arrival.frame)) {
      drop(arrival.link, DropCause::kHost, arrival.frame);
    }
    return;
  }
  const Step step = forward_frame(*routing_, l.to, pool_->bytes(arrival.frame));
  if (step.link == fabric::kNoLink) {
    drop(arrival.link, step.cause, arrival.frame);
    return;
  }
  enqueue(arrival.at, arrival.at, step.link, arrival.frame);
}

void Network::enqueue(Picoseconds now, Picoseconds earliest, LinkId link, FrameId frame) {
  advance(now, link);
  LinkState& l = links_[index(link)];
  if (l.faulty && is_down(link)) {
    note_offer(now, link, frame);
    drop(link, DropCause::kDown, frame);
    return;
  }
  if (l.faulty && condition(link).spoils() && !survives(now, link, frame)) return;
  bool control = false;
  if (!admit(link, frame, control)) return;
  append(control ? l.control : l.data, frame);
  if (l.busy_until <= now) start(std::max(l.busy_until, earliest), link, pop(link));
}

// Probes may look at a dead path as long as they like.
void Network::note_offer(Picoseconds now, LinkId link, FrameId frame) {
  if (!carries_data(pool_->bytes(frame))) return;
  Breach& breach = breaches_[index(link)];
  const Picoseconds after = std::max<Picoseconds>(now - breach.since, 0);
  breach.offered_after = std::max(breach.offered_after.value_or(0), after);
}

std::optional<Picoseconds> Network::offered_after(LinkId link) const {
  const auto found = breaches_.find(index(link));
  return found == breaches_.end() ? std::nullopt : found->second.offered_after;
}

bool Network::survives(Picoseconds now, LinkId link, FrameId frame) {
  note_offer(now, link, frame);
  const fabric::LinkCondition& link_is = condition(link);
  if (link_is.black_hole) {
    drop(link, DropCause::kBlackHole, frame);
    return false;
  }
  if (happens(link_is.loss)) {
    drop(link, DropCause::kLoss, frame);
    return false;
  }
  if (happens(link_is.corrupt)) {
    corrupt(pool_->bytes(frame), random_.next64());
    ++counters_[index(link)].corrupted;
  }
  return true;
}

bool Network::admit(LinkId link, FrameId frame, bool& control) {
  const LinkState& l = links_[index(link)];
  const fabric::QueuePolicy& policy = policies_[l.policy];
  const auto length = [&] { return static_cast<std::uint32_t>(pool_->bytes(frame).size()); };
  const FrameClass kind = classify(format_.dscp, pool_->bytes(frame));
  control = kind.control;
  if (!control) {
    const fabric::Admission admission =
        fabric::admit_data(policy, l.data.bytes, length(), kind.trimmable);
    if (admission == fabric::Admission::kEnqueue) return true;
    std::size_t left = 0;
    if (admission == fabric::Admission::kTrim)
      left = trim(format_, pool_->bytes(frame), policy.faces_host);
    if (left == 0) {
      drop(link, DropCause::kFull, frame);
      return false;
    }
    pool_->set_length(frame, left);
    ++counters_[index(link)].trims;
    control = true;
  }
  if (fabric::admit_control(policy, l.control.bytes, length()) == fabric::Admission::kEnqueue)
    return true;
  drop(link, DropCause::kFull, frame);
  return false;
}

// Starts every transmission that begins at or before `now`.
void Network::advance(Picoseconds now, LinkId link) {
  LinkState& l = links_[index(link)];
  while (l.busy_until <= now && (l.control.head != kNoFrame || l.data.head != kNoFrame))
    start(l.busy_until, link, pop(link));
}

FrameId Network::pop(LinkId link) {
  LinkState& l = links_[index(link)];
  if (l.control.head != kNoFrame) return take_first(l.control);
  const bool mark = fabric::marks_ecn(policies_[l.policy], l.data.bytes, random_.next32());
  const FrameId frame = take_first(l.data);
  if (mark && mark_congestion(pool_->bytes(frame))) ++counters_[index(link)].marks;
  return frame;
}

void Network::start(Picoseconds at, LinkId link, FrameId frame) {
  LinkState& l = links_[index(link)];
  const auto bytes = pool_->bytes(frame);
  l.busy_until = at + fabric::transmission_ps(bytes.size(), l.bits_per_second);
  LinkCounters& c = counters_[index(link)];
  ++c.frames;
  c.bytes += bytes.size();
  if (l.tap != nullptr) l.tap->on_frame(link, at, bytes);
  arrivals_.push_back({l.busy_until + l.delay_ps, order_++, link, frame});
  std::push_heap(arrivals_.begin(), arrivals_.end());
}

void Network::append(Queue& queue, FrameId frame) {
  pool_->next(frame) = kNoFrame;
  if (queue.head == kNoFrame) {
    queue.head = frame;
  } else {
    pool_->next(queue.tail) = frame;
  }
  queue.tail = frame;
  queue.bytes += static_cast<std::uint32_t>(pool_->bytes(frame).size());
}

FrameId Network::take_first(Queue& queue) {
  const FrameId frame = queue.head;
  queue.head = pool_->next(frame);
  queue.bytes -= static_cast<std::uint32_t>(pool_->bytes(frame).size());
  return frame;
}

void Network::count(LinkId link, DropCause cause) {
  ++counters_[index(link)].drops[static_cast<unsigned>(cause)];
}

void Network::drop(LinkId link, DropCause cause, FrameId frame) {
  count(link, cause);
  pool_->give_back(frame);
}

bool Network::happens(double probability) {
  return probability > 0 && random_.next32() < probability * 4'294'967'296.0;
}

// --- Faults ---

void Network::flush(LinkId link) {
  LinkState& l = links_[index(link)];
  for (Queue* queue : {&l.control, &l.data}) {
    while (queue->head != kNoFrame)
      drop(link, DropCause::kDown, take_first(*queue));
  }
}

void Network::apply(const fabric::FaultAction& action) {
  LinkState& l = links_[index(action.link)];
  const fabric::LinkCondition before = condition(action.link);
  const fabric::LinkCondition& after = faults_.apply(action);
  l.faulty = true;
  if ((after.down && !before.down) || (after.spoils() && !before.spoils()))
    breaches_[index(action.link)].since = action.time_ps;
  const fabric::LinkTier tier = topology().describe(action.link).tier;
  const auto nominal = static_cast<double>(topology().link_class(tier).bits_per_second);
  l.bits_per_second =
      std::max<std::uint64_t>(static_cast<std::uint64_t>(nominal * after.rate_share), 1'000);
  if (!after.down) return;
  faults_.lose_flight(action.link, l.busy_until + l.delay_ps);
  flush(action.link);
}

bool Network::carrier(unsigned plane, unsigned host) const {
  return !is_down(topology().host_up(plane, host)) && !is_down(topology().host_down(plane, host));
}

std::string Network::condition_in_words(LinkId link) const {
  return is_down(link) ? "down" : fabric::in_words(condition(link));
}

void Network::watch(LinkId link, Tap* tap) { links_[index(link)].tap = tap; }

}  // namespace mrc::lab
