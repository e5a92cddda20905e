// The books of an engine: what query_qp shows agrees with itself, with the other queue pairs of the
// same peer, and with what the world has seen.
#include <cinttypes>

#include "dst/checker.h"
#include "dst/failure.h"
#include "dst/world.h"

namespace mrc::dst {
namespace {

// One in so many idle moments is looked at closely.
constexpr std::uint32_t kStatusSampling = 48;
constexpr std::uint32_t kGuardSampling = 4'000;

unsigned hex(QpNumber number) { return static_cast<unsigned>(number); }

core::QpStatus query(const Host& host, QpNumber number) {
  const auto status = host.engine().query_qp(number);
  MRC_CHECK(status.ok(), "query_qp refused queue pair %06x: %s", hex(number),
            status.status().what());
  return status.value();
}

}  // namespace

void Checker::on_idle(Host& host, bool all_ports_free) {
  if (random_.one_in(kGuardSampling)) host.memory().check_guards(host.id());
  if (!random_.one_in(kStatusSampling)) return;
  const auto ends = world_.model.ends_of(host.id());
  if (ends.empty()) return;
  const EndRef ref = random_.pick(ends);
  check_status(host, ref);
  if (all_ports_free) check_deadline(host);
}

// No timer is ever lost: while a request is outstanding there is a moment at which the engine wants
// to be called, whatever the network does. Completions must have been taken for this to be
// meaningful.
void Checker::check_deadline(Host& host) {
  if (world_.stage.active(Fault::kSlowConsumer) || host.ports_up().empty()) return;
  if (host.engine().next_deadline() != kNever) return;
  for (const EndRef ref : world_.model.ends_of(host.id())) {
    const QpNumber number = world_.model.end(ref).config.number;
    const core::QpStatus status = query(host, number);
    MRC_CHECK(status.state != core::QpState::kReadyToSend || status.sends_outstanding == 0,
              "host %u has no deadline, but %u requests of queue pair %06x are outstanding",
              host.id(), status.sends_outstanding, hex(number));
  }
}

void Checker::check_status(Host& host, EndRef ref) {
  const End& end = world_.model.end(ref);
  const unsigned qp = hex(end.config.number);
  const core::QpStatus status = query(host, end.config.number);
  const bool doomed = world_.model.connection(ref.connection).doomed();
  if (!doomed) {
    MRC_CHECK(status.state == core::QpState::kReadyToSend, "queue pair %06x left RTS unasked", qp);
  }
  if (status.state != core::QpState::kReadyToSend) return;
  const Flow& incoming = world_.model.incoming(ref);
  MRC_CHECK(status.expected_psn == incoming.psn(incoming.contiguous()),
            "queue pair %06x expects PSN %06x, but the first missing one is %06x", qp,
            status.expected_psn.value(), incoming.psn(incoming.contiguous()).value());
  MRC_CHECK(status.counters.data_received == incoming.arrived_packets() &&
                status.counters.bytes_received == incoming.arrived_bytes(),
            "queue pair %06x counts %" PRIu64 " packets received, it was %" PRIu64, qp,
            status.counters.data_received, incoming.arrived_packets());
  MRC_CHECK(status.sends_outstanding <= end.config.max_sends,
            "queue pair %06x holds %u sends, at most %u are allowed", qp, status.sends_outstanding,
            end.config.max_sends);
  MRC_CHECK(status.receives_outstanding <= end.receives.size(),
            "queue pair %06x holds %u receives, the program posted %zu", qp,
            status.receives_outstanding, end.receives.size());
  const std::size_t evs = std::size_t{status.good_evs} + status.bad_evs + end.denied.size();
  MRC_CHECK(evs == end.init.ev_profile->size(),
            "queue pair %06x: %u good, %u bad, %zu denied EVs, but the profile has %u", qp,
            status.good_evs, status.bad_evs, end.denied.size(), end.init.ev_profile->size());
  check_send_books(ref, status);
  check_peer_books(host, ref, status);
}

// Each packet between the oldest and the next is in flight, or lost, or has arrived.
void Checker::check_send_books(EndRef ref, const core::QpStatus& status) {
  const End& end = world_.model.end(ref);
  const Flow& flow = world_.model.outgoing(ref);
  const unsigned qp = hex(end.config.number);
  MRC_CHECK(status.next_psn == flow.psn(flow.sent_packets()),
            "queue pair %06x: next PSN is %06x, but %06x follows what was sent", qp,
            status.next_psn.value(), flow.psn(flow.sent_packets()).value());
  const std::int64_t oldest = flow.packet_number(status.oldest_unacknowledged);
  MRC_CHECK(oldest >= 0 && oldest <= static_cast<std::int64_t>(flow.contiguous()),
            "queue pair %06x forgot PSN %06x, which has not arrived", qp,
            flow.psn(flow.contiguous()).value());
  const auto first = static_cast<std::uint64_t>(oldest);
  const std::uint64_t span = flow.sent_packets() - first;
  const std::uint64_t kept = std::uint64_t{status.packets_in_flight} + status.packets_lost;
  const std::uint64_t arrived = flow.arrived_between(first, flow.sent_packets());
  MRC_CHECK(kept <= span && kept + arrived >= span,
            "queue pair %06x: %u in flight, %u lost, %" PRIu64 " arrived of %" PRIu64 " packets",
            qp, status.packets_in_flight, status.packets_lost, arrived, span);
  // Who backs off gives its room in the window to others (retry_policy.h).
  const bool may_back_off = status.counters.timeouts > 0;
  MRC_CHECK(status.packets_in_flight > 0 || status.bytes_in_flight == 0,
            "queue pair %06x: no packets but %" PRId64 " bytes in flight", qp,
            status.bytes_in_flight);
  MRC_CHECK(status.packets_in_flight == 0 || status.bytes_in_flight > 0 || may_back_off,
            "queue pair %06x: %u packets but %" PRId64 " bytes in flight", qp,
            status.packets_in_flight, status.bytes_in_flight);
  const std::uint32_t widest = std::uint32_t{end.rts.mpr} * core::kWindowUnitPsns;
  MRC_CHECK(status.window_psns >= core::kWindowUnitPsns && status.window_psns <= widest,
            "queue pair %06x: window of %u PSNs, at most %u were agreed", qp, status.window_psns,
            widest);
  MRC_CHECK(status.counters.data_sent - status.counters.retransmitted == flow.sent_packets(),
            "queue pair %06x counts %" PRIu64 " sent and %" PRIu64 " again, %" PRIu64 " were new",
            qp, status.counters.data_sent, status.counters.retransmitted, flow.sent_packets());
}

// A congestion controller counts what its queue pairs count together: those to one peer with the
// same profile and hints.
void Checker::check_peer_books(Host& host, EndRef ref, const core::QpStatus& status) {
  const End& end = world_.model.end(ref);
  const unsigned qp = hex(end.config.number);
  const bool none = end.init.cc.algorithm == core::CcAlgorithm::kNone;
  std::int64_t together = 0;
  for (const EndRef other : world_.model.ends_of(host.id())) {
    const End& sharer = world_.model.end(other);
    if (sharer.rtr.remote != end.rtr.remote) continue;
    const bool same = none ? sharer.init.cc.algorithm == core::CcAlgorithm::kNone
                           : sharer.init.cc == end.init.cc && sharer.init.hints == end.init.hints;
    if (same) together += query(host, sharer.config.number).bytes_in_flight;
  }
  MRC_CHECK(status.peer_bytes_in_flight == together,
            "queue pair %06x: %" PRId64
            " bytes in flight to the peer, the queue pairs say %" PRId64,
            qp, status.peer_bytes_in_flight, together);
  MRC_CHECK(none || status.window_bytes >= static_cast<std::int64_t>(core::kMinPathMtu),
            "queue pair %06x: congestion window of %" PRId64 " bytes", qp, status.window_bytes);
}

}  // namespace mrc::dst
