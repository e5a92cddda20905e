#include "core/endpoint.h"

#include <algorithm>
#include <utility>

#include "core/endpoint_impl.h"

namespace mrc::core {

Endpoint::Impl::Impl(const EndpointConfig& endpoint_config)
    : config(endpoint_config),
      events(endpoint_config.event_capacity, counters.events_dropped),
      memory(endpoint_config.max_regions),
      prng(endpoint_config.seed),
      qps(endpoint_config.max_qps),
      qp_index(endpoint_config.max_qps),
      peers(endpoint_config.max_peers),
      peer_index(endpoint_config.max_peers),
      ports(endpoint_config.port_count, endpoint_config.max_peers,
            static_cast<std::uint16_t>(prng.next32()), mix64(endpoint_config.seed)),
      control(endpoint_config.control_capacity, endpoint_config.max_qps),
      scheduler(endpoint_config.max_qps),
      completions(endpoint_config.max_qps),
      timers(endpoint_config.max_qps),
      endpoint_probes(endpoint_config.endpoint_request_capacity) {
  counters.ports.resize(endpoint_config.port_count);
}

Endpoint::Endpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Endpoint::~Endpoint() = default;

Result<std::unique_ptr<Endpoint>> Endpoint::create(const EndpointConfig& config) {
  if (config.port_count == 0 || config.port_count > kMaxPorts) {
    return Status{ErrorCode::kInvalidArgument, "an endpoint has 1 to 16 ports"};
  }
  if (config.max_qps == 0 || config.max_peers == 0 || config.max_regions == 0) {
    return Status{ErrorCode::kInvalidArgument,
                  "an endpoint needs room for at least one queue pair, peer and region"};
  }
  if (config.control_capacity == 0) {
    return Status{ErrorCode::kInvalidArgument, "the control queue needs room for an answer"};
  }
  return std::unique_ptr<Endpoint>(new Endpoint(std::make_unique<Impl>(config)));
}

Result<Rkey> Endpoint::register_memory(const MemoryRegion& region, RandomSource& random) {
  return impl_->memory.add(region, random);
}

Result<Rkey> Endpoint::register_memory(const MemoryRegion& region, Rkey key) {
  return impl_->memory.add(region, key);
}

Status Endpoint::invalidate_memory(Rkey key) { return impl_->memory.remove(key); }

void Endpoint::count_drop(DropReason reason) {
  ++impl_->counters.drops[static_cast<std::size_t>(reason)];
}

TimeNs Endpoint::next_deadline() const {
  return std::min(
      {impl_->timers.earliest(), impl_->ports.deadline(), impl_->endpoint_probe_deadline});
}

bool Endpoint::next_event(Event& out) { return impl_->events.pop(out); }

const EndpointCounters& Endpoint::counters() const { return impl_->counters; }
const EndpointConfig& Endpoint::config() const { return impl_->config; }
PortMask Endpoint::ports_up() const { return impl_->ports.ours(); }

bool Endpoint::next_completion(Completion& out) {
  Impl& e = *impl_;
  while (!e.completions.empty()) {
    Qp& qp = *e.qps[e.completions.front()];
    if (qp.responder.pop_completion(out) || qp.requester.pop_completion(out)) {
      out.qp = qp.config.number;
      return true;
    }
    qp.completion_queued = false;
    e.completions.pop_front();
  }
  return false;
}

// The heap may hold an earlier time than the queue pair's own deadline: moving a deadline back on
// every packet would cost more than waking up early once in a while.
void Endpoint::Impl::refresh_timer(Qp& qp) {
  const TimeNs deadline = qp.requester.deadline();
  if (deadline < timers.deadline(qp.slot)) timers.set(qp.slot, deadline);
}

void Endpoint::on_timer(TimeNs now) {
  Impl& e = *impl_;
  e.events.set_time(now);
  e.ports.on_timer(now);
  if (now >= e.endpoint_probe_deadline) e.expire_endpoint_probes(now);
  while (e.timers.earliest() <= now) {
    Qp& qp = *e.qps[e.timers.earliest_slot()];
    if (qp.requester.deadline() <= now) {
      const Requester::Outcome result = qp.requester.on_timer(now);
      if (result.fatal) e.fail(qp, result.status);
      e.doubt_ports(qp);
      // Whose time has made room is not the next to use it: one that times out again and again
      // would keep it from those that wait.
      if (MRC_BUG(kTimeoutJumpsTheLine)) {
        e.unpark(qp);
      } else if (result.opened_window && qp.group != nullptr) {
        e.scheduler.wake_first(qp.group->waiting);
      }
      e.after_event(qp);
    }
    // Whatever is still due waits for a port, not for time.
    const TimeNs next = qp.requester.deadline();
    e.timers.set(qp.slot, next > now ? next : now + 1);
  }
}

}  // namespace mrc::core
