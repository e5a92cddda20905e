// What a device tells about itself, and requests to other endpoints.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>

#include "nic/device_impl.h"
#include "os/errors.h"

namespace mrc::nic {
namespace {

void add(core::EndpointCounters& sum, const core::EndpointCounters& more) {
  for (std::size_t i = 0; i < sum.drops.size(); ++i)
    sum.drops[i] += more.drops[i];
  for (std::size_t i = 0; i < sum.ports.size() && i < more.ports.size(); ++i) {
    sum.ports[i].packets_sent += more.ports[i].packets_sent;
    sum.ports[i].bytes_sent += more.ports[i].bytes_sent;
    sum.ports[i].packets_received += more.ports[i].packets_received;
    sum.ports[i].bytes_received += more.ports[i].bytes_received;
  }
  sum.events_dropped += more.events_dropped;
  sum.control_dropped += more.control_dropped;
}

void add(BackendCounters& sum, const BackendCounters& more) {
  sum.send_calls += more.send_calls;
  sum.receive_calls += more.receive_calls;
  sum.packets_sent += more.packets_sent;
  sum.packets_received += more.packets_received;
  sum.header_checked += more.header_checked;
  sum.send_refused += more.send_refused;
  sum.receive_overflow += more.receive_overflow;
}

}  // namespace

DeviceReport DeviceImpl::report() {
  if (in_child()) return {};
  try {
    const GroupLock lock(*group_);
    return build_report();
  } catch (const std::bad_alloc&) {
    return {};
  }
}

DeviceReport DeviceImpl::build_report() {
  EnginePump& lead = group_->lead().pump();
  DeviceReport report{.process = lead.backend().process_number(),
                      .threads = static_cast<unsigned>(group_->engines.size()),
                      .path_mtu = path_mtu_,
                      .port_bits_per_second = port_bits_per_second_,
                      .stance = lead.backend().stance()};
  report.engine.ports.resize(port_count_);
  for (const auto& engine : group_->engines) {
    add(report.engine, engine->pump().endpoint().counters());
    add(report.backend, engine->pump().backend().counters());
    report.queue_pairs += engine->qp_count();
  }
  const PortMask link = lead.backend().link_up();
  for (unsigned i = 0; i < port_count_; ++i) {
    const auto port = static_cast<PortId>(i + 1);
    report.ports.push_back(
        {.port = port,
         .plane = i < config_.planes.size() ? config_.planes[i] : node::PlaneConfig{},
         .enabled = lead.ports_enabled().contains(port),
         .link_up = link.contains(port),
         .counters = report.engine.ports[i]});
  }
  return report;
}

int DeviceImpl::endpoint_requests(std::span<const EndpointRequest> requests, DurationNs timeout_ns,
                                  std::vector<EndpointAnswer>& answers) {
  answers.clear();
  if (in_child()) return EIO;
  if (timeout_ns < 0) return EINVAL;
  for (const EndpointRequest& request : requests) {
    const auto port = static_cast<unsigned>(request.port);
    if (port == 0 || port > port_count_) return EINVAL;
  }
  RequestBatch batch;
  batch.answers = &answers;
  batch.missing = requests.size();
  int error = 0;
  try {
    answers.reserve(requests.size());
    error = send_requests(requests, batch);
  } catch (const std::bad_alloc&) {
    error = ENOMEM;
  }
  if (error == 0 && !wait_for_answers(batch, timeout_ns)) error = ETIMEDOUT;
  const EngineGuard guard(group_->lead());
  group_->lead().pump().requests().forget(batch);
  return error;
}

// A probe that is lost says something about its path. A port status is news, and told until it is
// answered, as the engine's are: it may be lost, or come before the peer knows of us.
bool DeviceImpl::wait_for_answers(RequestBatch& batch, DurationNs timeout_ns) {
  constexpr DurationNs kFirstRepeatNs = kMillisecondNs;
  constexpr DurationNs kLastRepeatNs = 100 * kMillisecondNs;
  DurationNs pause = kFirstRepeatNs;
  for (DurationNs left = timeout_ns;; left -= pause, pause = std::min(2 * pause, kLastRepeatNs)) {
    {
      std::unique_lock lock(batch.mutex);
      const std::chrono::nanoseconds wait(std::min(pause, left));
      if (batch.answered.wait_for(lock, wait, [&] { return batch.missing == 0; })) return true;
    }
    if (left <= pause) return false;
    const EngineGuard guard(group_->lead());
    EnginePump& lead = group_->lead().pump();
    lead.requests().repeat_news(batch, Engine::clock(), lead.vendor_info(), lead.backend());
    lead.backend().flush();
  }
}

// They go to the first process of the peer, which every node that runs MRC has. To the own node
// they go to this process: the first one may end before the answer.
int DeviceImpl::send_requests(std::span<const EndpointRequest> requests, RequestBatch& batch) {
  const EngineGuard guard(group_->lead());
  EnginePump& lead = group_->lead().pump();
  Backend& backend = lead.backend();
  for (const EndpointRequest& request : requests) {
    const bool own_node = request.peer == gid();
    const PeerName peer = peer_name(config_.dialect, request.peer,
                                    own_node ? backend.process_number() : ProcessNumber{0});
    const wire::EndpointOp op =
        request.port_status ? wire::EndpointOp::kPortStatusUpdate : wire::EndpointOp::kEvProbe;
    const bool srv6 = is_srv6(request.kind);
    const std::uint32_t entropy = srv6 ? lead.random().next32() | 0xC000
                                       : entropy_of(request.kind, request.ev, config_.dialect);
    const Result<std::uint32_t> path = backend.prepare_path(request.port, entropy);
    if (!path.ok()) return os::errno_of(path.status());
    const bool with_control = request.dscp == config_.dscp.control;
    const EndpointRequests::Pending pending{
        .op = op,
        .user_id = request.id,
        .ports = request.ports,
        .route = {.peer = peer,
                  .port = request.port,
                  .entropy = path.value(),
                  .srv6 = srv6 ? &request.ev : nullptr,
                  .dscp = request.dscp},
        .traffic_class = with_control ? core::TrafficClass::kControl : core::TrafficClass::kNoTrim,
        .batch = &batch};
    std::uint16_t id = 0;
    if (!lead.requests().add(pending, id)) return ENOMEM;
    lead.requests().send(id, Engine::clock(), lead.vendor_info(), backend);
  }
  backend.flush();
  return 0;
}

}  // namespace mrc::nic
