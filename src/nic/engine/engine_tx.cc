// Packets out: from what the protocol wants to send to the back end.
#include <sched.h>

#include <algorithm>
#include <bit>

#include "nic/engine/engine.h"
#include "nic/queue_pair.h"

namespace mrc::nic {
namespace {

constexpr unsigned kSendBudget = 64;
constexpr unsigned kPacketsPerClockReading = 16;
constexpr unsigned kLastRounds = 8;
constexpr unsigned kLastTries = 1'000;

}  // namespace

// The protocol hands out answers before data. Where there are few of both, data goes first:
// somebody waits for it, and the answers cost system calls of their own.
void Engine::transmit() {
  sources_.begin_round(now_);
  choose_quantum();
  const unsigned budget = kSendBudget / quantum_ * quantum_;  // cuts no burst in two
  unsigned sent = 0;
  while (sent < few_.size() && next_packet(few_[sent]))
    ++sent;
  const std::span<const core::TxPacket> few(few_.data(), sent);
  for (const core::TxPacket& tx : few)
    if (tx.payload_length > 0) send(tx);
  for (const core::TxPacket& tx : few)
    if (tx.payload_length == 0) send(tx);
  if (sent == few_.size()) {
    for (; sent < budget && next_packet(few_.front()); ++sent) {
      send(few_.front());
      if (sent % kPacketsPerClockReading == 0) now_ = clock();
    }
  }
  if (sent >= budget) more_work_ = true;
  if (sent == 0) return;
  moved_ += sent;
  backend_->flush();
}

// A card has acknowledged what it completed. Where a program ends right behind its last completion,
// its peer would otherwise wait for an answer that nobody gives.
void Engine::pay_answers() {
  now_ = clock();
  take_doorbells();
  more_work_ = true;
  for (unsigned round = 0; more_work_ && round < kLastRounds; ++round) {
    more_work_ = false;
    transmit();
  }
}

void Engine::on_exit() {
  for (unsigned tries = 0; tries < kLastTries; ++tries) {
    if (lock_.try_lock()) {
      pay_answers();
      unlock();
      return;
    }
    sched_yield();
  }
}

bool Engine::next_packet(core::TxPacket& tx) {
  return endpoint_->next_packet(now_, backend_->free_ports(), tx);
}

// Packets in a row on one path cost less, and packets on many paths wait less and meet less of what
// goes wrong on one. So what is under way is dealt out to all planes, and the more that is, the
// more of it goes together.
void Engine::choose_quantum() {
  const auto planes =
      static_cast<unsigned>(std::max(std::popcount(endpoint_->ports_up().bits()), 1));
  const std::uint64_t share = packets_under_way_ / planes;
  const unsigned quantum =
      fixed_quantum_ != 0
          ? std::min(fixed_quantum_, core::Endpoint::kMaxSprayQuantum)
          : static_cast<unsigned>(std::clamp<std::uint64_t>(share, 1, backend_->burst_limit()));
  if (quantum == quantum_) return;
  quantum_ = quantum;
  endpoint_->set_spray_quantum(quantum);
}

void Engine::send(const core::TxPacket& tx) {
  if (tx.packet.bth.destination == kEndpointQp) {
    send_for_endpoint(tx);
    return;
  }
  QueuePairImpl* qp = find(tx.local_qp);
  MRC_ASSERT(qp != nullptr);
  const Route route{.peer = qp->e.remote,
                    .port = tx.port,
                    .entropy = tx.entropy,
                    .srv6 = qp->e.paths->srv6_of(tx.ev)};
  QueuePairImpl::Pieces pieces;
  unsigned count = 0;
  if (tx.payload_length > 0) {
    const auto slot = static_cast<std::uint32_t>(tx.local_address >> 32);
    const auto offset = static_cast<std::uint32_t>(tx.local_address);
    count = qp->gather(slot, offset, tx.payload_length, sources_, pieces);
    if (count == 0) {
      // Its program took memory away that was still to be sent.
      [[maybe_unused]] const Status done =
          endpoint_->refuse_send(now_, tx.local_qp, tx.packet.bth.psn);
      more_work_ = true;
      return;
    }
  }
  backend_->send(route, tx.traffic_class, tx.packet, {pieces.data(), count});
}

// Requests tell our process number, which the answer's way back needs.
void Engine::send_for_endpoint(const core::TxPacket& tx) {
  const PeerName* peer = peers_.name_of(tx.destination);
  if (peer == nullptr) return;
  Route route{.peer = *peer, .port = tx.port, .entropy = tx.entropy};
  if (tx.local_qp != kEndpointQp) route.srv6 = find(tx.local_qp)->e.paths->srv6_of(tx.ev);
  wire::Packet packet = tx.packet;
  if (auto* request = std::get_if<wire::EndpointRequest>(&packet.body)) {
    request->vendor_info = backend_->process_number();
    requests_.note_sent(static_cast<std::uint16_t>(packet.bth.psn.value()), tx.destination);
  }
  backend_->send(route, tx.traffic_class, packet, {});
}

}  // namespace mrc::nic
