// After the quiet phase: everything is done, both ends agree, memory is as the model says.
#include <algorithm>
#include <cinttypes>

#include "dst/checker.h"
#include "dst/failure.h"
#include "dst/world.h"

namespace mrc::dst {
namespace {

unsigned hex(QpNumber number) { return static_cast<unsigned>(number); }

}  // namespace

void Checker::on_event(Host& host, const core::Event& event) {
  MRC_CHECK(event.time <= host.clock(), "host %u reports an event of the future", host.id());
  switch (event.kind) {
    case core::EventKind::kQpError: {
      const auto ref = world_.model.find(host.id(), event.qp);
      // It may have been destroyed before its event was read, and its number used again.
      if (!ref || event.time < world_.model.end(*ref).created) break;
      MRC_CHECK(world_.model.connection(ref->connection).doomed(),
                "queue pair %06x reports failure '%s' without a cause", hex(event.qp),
                core::completion_status_name(event.status));
      break;
    }
    case core::EventKind::kLocalPort:
      MRC_CHECK(static_cast<unsigned>(event.port) >= 1 &&
                    static_cast<unsigned>(event.port) <= world_.stage.swarm.ports,
                "event about port %u, which does not exist", static_cast<unsigned>(event.port));
      break;
    case core::EventKind::kRemotePorts:
      check_remote_ports_event(host, event);
      break;
    case core::EventKind::kEndpointAnswer:
      world_.api_faults.on_answer(host, event);
      break;
    default:
      break;
  }
}

void Checker::check_remote_ports_event(const Host& host, const core::Event& event) {
  const auto peer = static_cast<unsigned>(event.peer.low - 1);
  MRC_CHECK(peer < world_.hosts.size() && world_.hosts[peer]->address() == event.peer,
            "host %u heard of the ports of an address nobody has", host.id());
  // As the peer once said, or a forger for it, and perhaps more through which it was heard since.
  const PortMask heard = heard_through_[{host.id(), peer}];
  const auto& claimed = claimed_ports_[{host.id(), peer}];
  const bool was_claimed = std::any_of(claimed.begin(), claimed.end(), [&](std::uint32_t up) {
    return event.ports == (PortMask(up) | (event.ports & heard));
  });
  MRC_CHECK(was_claimed || world_.hosts[peer]->had_ports(event.ports, heard),
            "host %u says that host %u has ports %#x, which was never so", host.id(), peer,
            event.ports.bits());
  // What the peer calls down now was heard of before that, if this event is of now.
  if (!world_.stage.swarm.on(Fault::kSlowConsumer)) {
    heard_through_[{host.id(), peer}] = heard & event.ports;
  }
  remote_ports_[{host.id(), peer}] = event.ports;
}

void Checker::on_connect(unsigned host_a, unsigned host_b) {
  remote_ports_.erase({host_a, host_b});
  remote_ports_.erase({host_b, host_a});
}

void Checker::check_agreement() {
  for (const EndRef ref : world_.model.ends()) {
    const End& end = world_.model.end(ref);
    if (end.state == EndState::kFailed) {
      check_failed_end(ref);
    } else if (world_.model.end(ref.peer()).state == EndState::kLive) {
      check_end(ref);
    }
  }
}

void Checker::check_failed_end(EndRef ref) {
  const End& end = world_.model.end(ref);
  const Connection& connection = world_.model.connection(ref.connection);
  const unsigned qp = hex(end.config.number);
  const auto status = world_.hosts[end.host]->engine().query_qp(end.config.number);
  MRC_CHECK(status.ok() && status.value().state == core::QpState::kError,
            "queue pair %06x reported an error and is not in the error state", qp);
  MRC_CHECK(world_.model.all_reported(ref),
            "queue pair %06x failed without reporting all its requests", qp);
  MRC_CHECK(end.receives.empty(), "queue pair %06x failed and keeps %zu receives", qp,
            end.receives.size());
  MRC_CHECK(!end.offended || connection.doomed_by(Doom::kLocal) || end.error_reported,
            "queue pair %06x failed without saying why", qp);
}

void Checker::check_end(EndRef ref) {
  const End& end = world_.model.end(ref);
  const Flow& flow = world_.model.outgoing(ref);
  const unsigned qp = hex(end.config.number);
  Host& host = *world_.hosts[end.host];
  check_status(host, ref);
  const core::QpStatus status = host.engine().query_qp(end.config.number).value();
  MRC_CHECK(flow.all_arrived() && status.oldest_unacknowledged == status.next_psn,
            "queue pair %06x is not done", qp);
  MRC_CHECK(status.sends_outstanding == 0 && status.packets_in_flight == 0 &&
                status.packets_lost == 0 && status.bytes_in_flight == 0,
            "queue pair %06x is done, yet holds %u sends, %u packets in flight, %u lost", qp,
            status.sends_outstanding, status.packets_in_flight, status.packets_lost);
  MRC_CHECK(status.counters.messages_completed == flow.messages().size(),
            "queue pair %06x counts %" PRIu64 " messages done of %zu", qp,
            status.counters.messages_completed, flow.messages().size());
  MRC_CHECK(world_.model.all_reported(ref), "queue pair %06x did not report all its requests", qp);
  verify_messages(ref, flow.messages().size());
  const Flow& incoming = world_.model.incoming(ref);
  MRC_CHECK(end.immediates_delivered == incoming.immediates().size(),
            "queue pair %06x delivered %u immediates of %zu", qp, end.immediates_delivered,
            incoming.immediates().size());
  MRC_CHECK(status.counters.immediates == incoming.immediates().size(),
            "queue pair %06x counts %" PRIu64 " immediates of %zu", qp, status.counters.immediates,
            incoming.immediates().size());
  MRC_CHECK(status.receives_outstanding == end.receives.size(),
            "queue pair %06x holds %u receives of %zu", qp, status.receives_outstanding,
            end.receives.size());
  check_paths_recovered(ref, status);
  check_tallies(ref, status);
  check_path_order(ref, status);
}

// Paths that work again are found again. A queue pair that the program failed while it had nothing
// to report looks for none; check_status has seen that it was doomed.
void Checker::check_paths_recovered(EndRef ref, const core::QpStatus& status) {
  if (!world_.stage.swarm.heals() || status.state == core::QpState::kError) return;
  MRC_CHECK(status.bad_evs == 0,
            "%u EVs of queue pair %06x are still called bad after a long quiet time",
            status.bad_evs, hex(world_.model.end(ref).config.number));
}

void Checker::check_memory() {
  for (const auto& host : world_.hosts)
    host->memory().check_image(host->id());
}

}  // namespace mrc::dst
