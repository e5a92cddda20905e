#include "nic/engine/pump_transmit.h"

#include <algorithm>
#include <span>
#include <utility>

#include "nic/queue_pair.h"
#include "os/clock.h"

namespace mrc::nic {
namespace {

constexpr unsigned kSendBudget = 64;
constexpr unsigned kPacketsPerClockReading = 16;

}  // namespace

// The protocol hands out answers before data. Among the first 8 packets of a round data goes first:
// somebody waits for it, and the answers cost system calls of their own.
void PumpTransmit::run() {
  sources_.begin_round(state_.now);
  choose_quantum();
  const unsigned budget = kSendBudget / quantum_ * quantum_;  // cuts no burst in two
  unsigned sent = 0;
  unsigned count = 0;
  while (sent < first_.size() && next_run(budget - sent, first_[count]))
    sent += first_[count++].run;
  const std::span<const core::TxPacket> first(first_.data(), count);
  for (const core::TxPacket& tx : first)
    if (tx.payload_length > 0) send(tx);
  for (const core::TxPacket& tx : first)
    if (tx.payload_length == 0) send(tx);
  if (sent >= first_.size()) {
    unsigned since_clock = 0;
    while (sent < budget && next_run(budget - sent, first_.front())) {
      send(first_.front());
      sent += first_.front().run;
      since_clock += first_.front().run;
      if (since_clock < kPacketsPerClockReading) continue;
      since_clock = 0;
      state_.now = os::monotonic_now();
    }
  }
  if (sent >= budget) state_.more_work = true;
  if (sent == 0) return;
  state_.moved += sent;
  state_.backend->flush();
}

bool PumpTransmit::next_run(unsigned most, core::TxPacket& tx) {
  return state_.endpoint->next_run(state_.now, state_.backend->free_ports(), most, tx);
}

// Packets in a row on one path cost less, and packets on many paths wait less and meet less of what
// goes wrong on one. So what is under way is dealt out to all planes, and the more that is, the
// more of it goes together.
void PumpTransmit::choose_quantum() {
  const unsigned planes = std::max(state_.endpoint->ports_up().count(), 1U);
  const std::uint64_t share = state_.packets_under_way / planes;
  const std::uint64_t most = state_.backend->burst_limit();
  const unsigned quantum = fixed_quantum_ != 0
                               ? std::min(fixed_quantum_, core::Endpoint::kMaxSprayQuantum)
                               : static_cast<unsigned>(std::clamp<std::uint64_t>(share, 1, most));
  if (quantum == quantum_) return;
  quantum_ = quantum;
  state_.endpoint->set_spray_quantum(quantum);
}

void PumpTransmit::send(const core::TxPacket& tx) {
  if (tx.packet.bth.destination == kEndpointQp) {
    send_for_endpoint(tx);
    return;
  }
  QueuePairImpl* qp = state_.qps.find(tx.local_qp);
  MRC_ASSERT(qp != nullptr);
  Route route{.peer = qp->e.remote,
              .port = tx.port,
              .entropy = tx.entropy,
              .srv6 = qp->e.paths->srv6_of(tx.ev),
              .peer_takes_header_check = qp->e.peer_takes_header_check};
  if (tx.traffic_class == core::TrafficClass::kNoTrim) route.dscp = qp->e.dscp;
  QueuePairImpl::Pieces pieces;
  unsigned count = 0;
  if (tx.payload_length > 0) {
    const auto slot = static_cast<std::uint32_t>(tx.local_address >> 32);
    const auto offset = static_cast<std::uint32_t>(tx.local_address);
    count = qp->gather(slot, offset, tx.run * tx.payload_length, sources_, pieces);
    if (tx.run > 1) {
      if (count != 1) return send_one_by_one(tx);
      state_.backend->send_run(route, tx.traffic_class, tx.packet, pieces.front(), tx.run);
      return;
    }
    if (count == 0) {
      // Its program took memory away that was still to be sent.
      [[maybe_unused]] const Status done =
          state_.endpoint->refuse_send(state_.now, tx.local_qp, tx.packet.bth.psn);
      state_.more_work = true;
      return;
    }
  }
  state_.backend->send(route, tx.traffic_class, tx.packet, {pieces.data(), count});
}

// A run whose payload lies in several pieces, or is not all there.
void PumpTransmit::send_one_by_one(core::TxPacket tx) {
  for (unsigned left = std::exchange(tx.run, 1); left > 0; --left) {
    send(tx);
    wire::move_on(tx.packet, 1, tx.payload_length);
    tx.local_address += tx.payload_length;
  }
}

// Requests tell our process number where the answer's way back needs it.
void PumpTransmit::send_for_endpoint(const core::TxPacket& tx) {
  const PeerName* peer = state_.peers.name_of(tx.destination);
  if (peer == nullptr) return;
  Route route{.peer = *peer, .port = tx.port, .entropy = tx.entropy};
  if (tx.local_qp != kEndpointQp) {
    route.srv6 = state_.qps.find(tx.local_qp)->e.paths->srv6_of(tx.ev);
  }
  wire::Packet packet = tx.packet;
  if (auto* request = std::get_if<wire::EndpointRequest>(&packet.body)) {
    request->vendor_info = state_.vendor_info();
    state_.requests.note_sent(static_cast<std::uint16_t>(packet.bth.psn.value()), tx.destination);
  }
  state_.backend->send(route, tx.traffic_class, packet, {});
}

}  // namespace mrc::nic
