#include "nic/engine/pump_transmit.h"

#include <algorithm>
#include <compare>
#include <span>
#include <utility>

#include "nic/queue_pair.h"
#include "os/clock.h"
#include "wire/codec.h"

namespace mrc::nic {
namespace {

constexpr unsigned kPacketsPerClockReading = 16;

}  // namespace

// The protocol hands out answers before data. Of every 8 packets data goes first: somebody waits
// for it, and the answers cost system calls of their own. The budget is one of data, in whole
// bursts: with each question or answer counted in it, the last burst of a round was cut in two, and
// so were all after it.
void PumpTransmit::run() {
  sources_.begin_round(state_.now);
  choose_quantum();
  Round round{.data_left = kSendBudget / quantum_ * quantum_};
  unsigned clock_read_at = 0;
  std::span<const core::TxPacket> packets;
  do {
    packets = gather(round);
    for (const core::TxPacket& tx : packets)
      if (tx.payload_length > 0) send(tx);
    send_answers(packets);
    if (round.sent - clock_read_at < kPacketsPerClockReading) continue;
    clock_read_at = round.sent;
    state_.now = os::monotonic_now();
  } while (packets.size() == gathered_.size());
  if (round.is_over()) state_.more_work = true;
  if (round.sent == 0) return;
  state_.moved += round.sent;
  state_.backend->flush();
}

std::span<const core::TxPacket> PumpTransmit::gather(Round& round) {
  std::size_t count = 0;
  while (count < gathered_.size() && next_run(round, gathered_[count]))
    ++count;
  return {gathered_.data(), count};
}

// Those of one queue pair behind each other, also where the packets that they answer came from two
// in turn, and the longer before the shorter: they take one path, and as segments of one message,
// of which only the last may be shorter, they cost what one costs. A message that has arrived is
// answered by a SACK of 52 bytes and an ACK of 20.
void PumpTransmit::send_answers(std::span<const core::TxPacket> packets) {
  struct Answer {
    std::size_t first_of_qp;
    std::size_t shortness;
    std::size_t index;
    // NOLINTNEXTLINE(modernize-use-nullptr): see IpAddress
    auto operator<=>(const Answer&) const = default;
  };
  std::array<Answer, kGathered> answers;
  std::size_t count = 0;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    const core::TxPacket& tx = packets[i];
    if (tx.payload_length > 0) continue;
    const auto first = std::ranges::find(packets, tx.local_qp, &core::TxPacket::local_qp);
    answers[count++] = {static_cast<std::size_t>(first - packets.begin()),
                        wire::kMaxTransportHeader - header_length(tx.packet), i};
  }
  const std::span<Answer> found(answers.data(), count);
  std::ranges::sort(found);
  for (const Answer& answer : found)
    send(packets[answer.index]);
}

bool PumpTransmit::next_run(Round& round, core::TxPacket& tx) {
  const PortMask free = state_.backend->free_ports();
  if (round.is_over() || !state_.endpoint->next_run(state_.now, free, round.data_left, tx)) {
    return false;
  }
  round.sent += tx.run;
  (tx.payload_length > 0 ? round.data_left : round.others_left) -= tx.run;
  return true;
}

// Packets in a row on one path cost less, and packets on many paths wait less and meet less of what
// goes wrong on one. So what is under way is dealt out to all planes, and the more that is, the
// more of it goes together: up to a burst of the back end, or whole bursts.
unsigned PumpTransmit::suitable_quantum() const {
  if (fixed_quantum_ != 0) return std::min(fixed_quantum_, core::Endpoint::kMaxSprayQuantum);
  const unsigned planes = std::max(state_.endpoint->ports_up().count(), 1U);
  const std::uint64_t share = state_.packets_under_way / planes;
  const unsigned burst = state_.backend->burst_limit();
  if (burst == 1 || share <= 1) return 1;
  const unsigned most = std::min(kMostBurstsInARow * burst, core::Endpoint::kMaxSprayQuantum);
  const auto quantum = static_cast<unsigned>(std::min<std::uint64_t>(share, most));
  return quantum < burst ? quantum : quantum / burst * burst;
}

void PumpTransmit::choose_quantum() {
  const unsigned quantum = suitable_quantum();
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

// Requests tell our process number where the reverse path of the answer needs it.
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
