#include "nic/engine/pump_receive.h"

#include <atomic>
#include <vector>

#include "nic/place_bytes.h"
#include "nic/queue_pair.h"
#include "os/host_bug.h"
#include "wire/codec.h"

namespace mrc::nic {

unsigned PumpReceive::run(unsigned budget) {
  targets_.begin_round(state_.now);
  return state_.backend->receive(*this, budget);
}

void PumpReceive::on_dropped(DropReason reason) { state_.endpoint->count_drop(reason); }

void PumpReceive::on_received(const Received& received) {
  if (!state_.gate.takes(received.port, state_.now) && !MRC_HOST_BUG(kOffPortsTakePackets)) {
    for (unsigned i = 0; i < received.run; ++i)
      on_dropped(DropReason::kPortOff);
    return;
  }
  Received rest = received;
  for (;;) {
    const unsigned taken = take(rest);
    if (taken == rest.run) return;
    rest.run -= taken;
    const std::byte* const next = rest.transport.data() + taken * rest.stride;
    rest.transport = {next, rest.transport.size()};
  }
}

// The first packets of a run; how many.
unsigned PumpReceive::take(const Received& received) {
  wire::Packet packet;
  std::span<const std::byte> payload;
  const bool whole = received.trim == core::TrimState::kWhole;
  const DropReason malformed =
      whole ? wire::parse_transport(received.transport, packet, payload, state_.dialect)
            : wire::parse_trimmed_transport(received.transport, packet, state_.dialect);
  if (malformed != DropReason::kNone) {
    state_.endpoint->count_drop(malformed);
    return 1;
  }
  const QpNumber destination = packet.bth.destination;
  QueuePairImpl* qp = destination == kEndpointQp ? nullptr : state_.qps.find(destination);
  core::Arrival arrival{.source = source_of(received, packet, qp),
                        .port = received.port,
                        .entropy = received.entropy,
                        .congestion_experienced = received.congestion_experienced,
                        .trim = received.trim,
                        .payload_length = static_cast<std::uint32_t>(payload.size())};
  if (!received.icrc_good) {
    state_.endpoint->on_corrupt_packet(state_.now, arrival, packet);
    return 1;
  }
  if (packet.bth.opcode == wire::Opcode::kEndpointResponse && take_answer(received, packet)) {
    return 1;
  }
  // A receive posted before the peer could send this counts, even if its doorbell is still ringing.
  if (qp != nullptr && wire::has_immediate(packet.bth.opcode)) intake_.take(*qp);
  unsigned run = received.run;
  if (qp != nullptr && !has_target(*qp, packet, run * arrival.payload_length)) {
    const bool none = run == 1 || !has_target(*qp, packet, arrival.payload_length);
    if (none) arrival.refusal = core::CallerRefusal::kNoMemory;
    run = 1;
  }
  const core::RxResult result = state_.endpoint->on_run(state_.now, arrival, packet, run);
  if (qp == nullptr || result.drop != DropReason::kNone) return 1;
  qp->e.last_heard = state_.now;
  qp->e.last_heard_port = received.port;
  if (whole) qp->e.peer_takes_header_check = packet.bth.takes_header_check;
  if (result.taken > 1) {
    place_run(*qp, result, packet, payload, received.stride);
  } else if (result.placement.length > 0) {
    place(*qp, result.placement, packet, payload);
  }
  return result.taken;
}

// Whether the memory is there that the payload of a packet is for, so far as it names any, and open
// to the peer. Keys and bounds are the protocol's business.
bool PumpReceive::has_target(const QueuePairImpl& qp, const wire::Packet& packet,
                             std::uint32_t length) {
  const auto* write = std::get_if<wire::Write>(&packet.body);
  if (write == nullptr || length == 0) return true;
  if (qp.setup().allow_sends && core::is_send_key(write->key)) {
    const Result<std::uint64_t> receive = state_.endpoint->receive_of(qp.number(), packet);
    if (!receive.ok()) return true;
    return qp.can_scatter(static_cast<std::uint32_t>(receive.value()), {write->address, length},
                          targets_);
  }
  if (!qp.e.remote_writes) return false;
  const auto key = static_cast<std::uint32_t>(write->key);
  return targets_.holds({state_.group.regions.locate(key, write->address), length});
}

// True: it is for a controller. What refuses a controller's word may answer the engine's as well.
bool PumpReceive::take_answer(const Received& received, const wire::Packet& packet) {
  if (state_.requests.settle(state_.now, received, packet)) return true;
  if (const auto id = state_.requests.id_behind(received, packet)) {
    state_.requests.send(*id, state_.now, state_.vendor_info(), *state_.backend);
    state_.backend->flush();
  }
  return false;
}

// A packet for a queue pair comes from its peer or from nobody. Requests to the endpoint name their
// process in the vendor byte; answers come from whom we asked.
Address PumpReceive::source_of(const Received& received, const wire::Packet& packet,
                               const QueuePairImpl* qp) {
  if (qp != nullptr) {
    return qp->e.connected && qp->e.remote.gid == received.gid ? qp->e.remote_address : Address{};
  }
  if (packet.bth.destination != kEndpointQp) return {};
  if (const auto* request = std::get_if<wire::EndpointRequest>(&packet.body)) {
    return state_.peers.find_or_lend(peer_name(state_.dialect, received.gid, request->vendor_info));
  }
  const Address asked =
      state_.requests.destination_of(static_cast<std::uint16_t>(packet.bth.psn.value()));
  const PeerName* name = state_.peers.name_of(asked);
  if (name != nullptr && name->gid == received.gid) return asked;
  // Several peers may have been told with one id, and an answer may name one that was never ours
  // (core/port_status.h): then the host that it comes from says whose it is.
  return state_.peers.only_one_of(received.gid);
}

void PumpReceive::place(QueuePairImpl& qp, const core::Placement& placement,
                        const wire::Packet& packet, std::span<const std::byte> payload) {
  state_.program_sees_it = true;
  if (placement.into_receive) {
    const auto slot = static_cast<std::uint32_t>(placement.receive_id);
    qp.scatter(slot, placement.address, payload);
    return;
  }
  const auto& write = *std::get_if<wire::Write>(&packet.body);
  const auto key = static_cast<std::uint32_t>(write.key);
  std::byte* target = state_.group.regions.locate(key, placement.address);
  if (!qp.setup().last_byte_last) {
    place_bytes(target, payload.data(), placement.length);
    return;
  }
  place_last_byte_last(qp, {packet.bth.psn, key, target + placement.length - 1, payload.back()},
                       wire::ends_message(packet.bth.opcode), {target, payload});
}

// Packets of the middle of a write. None of them ends it, so no byte is held back.
void PumpReceive::place_run(QueuePairImpl& qp, const core::RxResult& result,
                            const wire::Packet& first, std::span<const std::byte> payload,
                            std::size_t stride) {
  state_.program_sees_it = true;
  const auto& write = *std::get_if<wire::Write>(&first.body);
  const auto key = static_cast<std::uint32_t>(write.key);
  std::byte* target = state_.group.regions.locate(key, result.placement.address);
  for (unsigned i = 0; i < result.taken; ++i)
    place_bytes(target + i * payload.size(), payload.data() + i * stride, payload.size());
  if (!qp.e.held.empty()) store_held(qp);
}

// For programs that watch the last byte of a write in memory: it is stored when everything the peer
// sent up to it has been, and behind all that.
void PumpReceive::place_last_byte_last(QueuePairImpl& qp, const HeldByte& last, bool ends_message,
                                       const Target& target) {
  const std::size_t length = target.payload.size() - (ends_message ? 1 : 0);
  place_bytes(target.address, target.payload.data(), length);
  auto& held = qp.e.held;
  if (ends_message) held.push_back(last);
  if (!held.empty()) store_held(qp);
}

// A byte whose memory has gone meanwhile was promised to the peer: the queue pair fails.
void PumpReceive::store_held(QueuePairImpl& qp) {
  const Result<Psn> expected = state_.endpoint->expected_psn(qp.number());
  if (!expected.ok()) return;
  bool gone = false;
  const auto passed = [&](const HeldByte& byte) {
    if (byte.psn.distance_from(expected.value()) >= 0) return false;
    if (targets_.holds({byte.target, 1})) {
      std::atomic_ref<std::byte>(*byte.target).store(byte.value, std::memory_order_release);
    } else {
      gone = true;
    }
    return true;
  };
  std::erase_if(qp.e.held, passed);
  if (!gone) return;
  [[maybe_unused]] const Status failed = state_.endpoint->fail_qp(state_.now, qp.number());
  state_.more_work = true;
}

void PumpReceive::forget_held(std::uint32_t remote_key) {
  state_.qps.for_each([&](QueuePairImpl& qp) {
    std::erase_if(qp.e.held, [&](const auto& byte) { return byte.remote_key == remote_key; });
  });
}

}  // namespace mrc::nic
