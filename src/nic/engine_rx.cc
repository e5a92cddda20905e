// Packets in: to the protocol, and their bytes to where it says.
#include <cstring>

#include "nic/engine.h"
#include "nic/queue_pair.h"
#include "wire/codec.h"

namespace mrc::nic {

void Engine::on_dropped(DropReason reason) { endpoint_->count_drop(reason); }

void Engine::on_received(const Received& received) {
  wire::Packet packet;
  std::span<const std::byte> payload;
  const bool whole = received.trim == core::TrimState::kWhole;
  const DropReason malformed = whole ? wire::parse_transport(received.transport, packet, payload)
                                     : wire::parse_trimmed_transport(received.transport, packet);
  if (malformed != DropReason::kNone) {
    endpoint_->count_drop(malformed);
    return;
  }
  const QpNumber destination = packet.bth.destination;
  QueuePairImpl* qp = destination == kEndpointQp ? nullptr : find(destination);
  const core::Arrival arrival{.source = source_of(received, packet, qp),
                              .port = received.port,
                              .entropy = received.entropy,
                              .congestion_experienced = received.congestion_experienced,
                              .trim = received.trim,
                              .payload_length = static_cast<std::uint32_t>(payload.size())};
  if (!received.icrc_good) {
    endpoint_->on_corrupt_packet(now_, arrival, packet);
    return;
  }
  if (packet.bth.opcode == wire::Opcode::kEndpointResponse &&
      requests_.settle(now_, received.gid, packet)) {
    return;
  }
  const core::RxResult result = endpoint_->on_packet(now_, arrival, packet);
  if (qp == nullptr || result.drop != DropReason::kNone) return;
  qp->e.last_heard = now_;
  qp->e.last_heard_port = received.port;
  if (result.placement.length > 0) place(result.placement, packet, payload);
}

// A packet for a queue pair comes from its peer or from nobody. Requests to the endpoint name their
// process in the vendor byte; answers come from whom we asked.
Address Engine::source_of(const Received& received, const wire::Packet& packet,
                          const QueuePairImpl* qp) {
  if (qp != nullptr) {
    return qp->e.connected && qp->e.remote.gid == received.gid ? qp->e.remote_address : Address{};
  }
  if (packet.bth.destination != kEndpointQp) return {};
  if (const auto* request = std::get_if<wire::EndpointRequest>(&packet.body)) {
    return peers_.find_or_lend({received.gid, request->vendor_info});
  }
  const Address asked =
      requests_.destination_of(static_cast<std::uint16_t>(packet.bth.psn.value()));
  const PeerName* name = peers_.name_of(asked);
  return name != nullptr && name->gid == received.gid ? asked : Address{};
}

void Engine::place(const core::Placement& placement, const wire::Packet& packet,
                   std::span<const std::byte> payload) {
  const auto& write = *std::get_if<wire::Write>(&packet.body);
  std::byte* target = regions_.locate(static_cast<std::uint32_t>(write.key), placement.address);
  std::memcpy(target, payload.data(), placement.length);
}

}  // namespace mrc::nic
