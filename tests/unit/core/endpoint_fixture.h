// One endpoint with two ports, and peers that the test plays.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/endpoint.h"

namespace mrc::core {

inline constexpr Address kPeer{0xFD00, 2};
inline constexpr Address kOtherPeer{0xFD00, 3};
inline constexpr QpNumber kQp{0x111};
inline constexpr QpNumber kPeerQp{0x222};
inline constexpr Psn kSendPsn{100};
inline constexpr Psn kReceivePsn{500};
inline constexpr std::uint32_t kMtu = 1024;
inline constexpr PortMask kBothPorts = PortMask::first(2);
inline constexpr std::uint64_t kMemoryBase = 0x10000;
inline constexpr Rkey kMemoryKey{0x77};

struct Engine {
  explicit Engine(EndpointConfig config = {}) {
    config.address = {0xFD00, 1};
    config.port_count = 2;
    endpoint = Endpoint::create(config).value();
    // EV i is on port 1 + i % 2.
    std::vector<EvEntry> entries;
    for (std::uint32_t i = 0; i < 8; ++i)
      entries.push_back({.entropy = 0x1000 + i, .port = static_cast<PortId>(i % 2 + 1)});
    profile = EvProfile::create(entries).value();
    const MemoryRegion region{.address = kMemoryBase, .length = 1 << 20, .remote_write = true};
    EXPECT_TRUE(endpoint->register_memory(region, kMemoryKey).ok());
  }

  // Steps of a queue pair, each as far as it goes.
  Status create(QpNumber qp = kQp) { return endpoint->create_qp({.number = qp}); }
  Status init(QpNumber qp = kQp) {
    return endpoint->init_qp(qp, {.ev_profile = &profile, .cc = {.algorithm = CcAlgorithm::kNone}});
  }
  Status to_rtr(QpNumber qp = kQp, Address peer = kPeer) {
    return endpoint->ready_to_receive(
        qp, {.remote = peer, .remote_qp = kPeerQp, .first_psn = kReceivePsn, .path_mtu = kMtu});
  }
  Status to_rts(QpNumber qp = kQp) {
    return endpoint->ready_to_send(now, qp, {.first_psn = kSendPsn});
  }
  void connect(QpNumber qp = kQp, Address peer = kPeer) {
    ASSERT_TRUE(create(qp).ok());
    ASSERT_TRUE(init(qp).ok());
    ASSERT_TRUE(to_rtr(qp, peer).ok());
    ASSERT_TRUE(to_rts(qp).ok());
  }
  Status post(std::uint32_t length, std::uint64_t id = 1, QpNumber qp = kQp) {
    return endpoint->post_send(now, qp, {.id = id, .length = length});
  }

  std::vector<TxPacket> drain(PortMask ports = kBothPorts, unsigned most = 1'000) {
    std::vector<TxPacket> packets;
    TxPacket out;
    while (packets.size() < most && endpoint->next_packet(now, ports, out))
      packets.push_back(out);
    return packets;
  }
  RxResult take(const wire::Packet& packet, Arrival arrival = {}) {
    if (arrival.source == Address{}) arrival.source = kPeer;
    if (const auto* write = std::get_if<wire::Write>(&packet.body))
      arrival.payload_length = write->message_length;
    return endpoint->on_packet(now, arrival, packet);
  }
  std::vector<Event> events() {
    std::vector<Event> all;
    Event one;
    while (endpoint->next_event(one))
      all.push_back(one);
    return all;
  }
  std::vector<Completion> completions() {
    std::vector<Completion> all;
    Completion one;
    while (endpoint->next_completion(one))
      all.push_back(one);
    return all;
  }
  QpStatus status(QpNumber qp = kQp) const { return endpoint->query_qp(qp).value(); }

  // What the peer sends.
  static wire::Packet write(unsigned place, std::uint32_t length = 64, QpNumber qp = kQp) {
    return {.bth = {.opcode = wire::Opcode::kWriteOnly,
                    .ack_request = true,
                    .has_timestamp = true,
                    .destination = qp,
                    .psn = kReceivePsn + place},
            .body = wire::Write{.msn = static_cast<std::uint16_t>(place),
                                .timestamp = {.ticks = 1'000},
                                .address = kMemoryBase,
                                .key = kMemoryKey,
                                .message_length = length}};
  }
  static wire::Packet probe(std::uint16_t id, QpNumber qp = kQp) {
    return {.bth = {.opcode = wire::Opcode::kProbe, .destination = qp},
            .body = wire::Probe{.probe_id = id,
                                .source_context = static_cast<std::uint16_t>(kPeerQp),
                                .destination_context = static_cast<std::uint16_t>(qp),
                                .timestamp = {.ticks = 2'000}}};
  }
  static wire::Packet request(wire::EndpointOp op, std::uint16_t id, PortMask ports = kBothPorts) {
    return {.bth = {.opcode = wire::Opcode::kEndpointRequest,
                    .destination = kEndpointQp,
                    .psn = Psn(id)},
            .body = wire::EndpointRequest{
                .op = op, .port_status = ports.bits(), .timestamp = {.ticks = 3'000}}};
  }
  static wire::Packet response(wire::EndpointOp op, std::uint16_t id, std::uint16_t ticks = 0) {
    return {.bth = {.opcode = wire::Opcode::kEndpointResponse,
                    .destination = kEndpointQp,
                    .psn = Psn(id)},
            .body = wire::EndpointResponse{.op = op, .timestamp_ticks = ticks}};
  }

  EvProfile profile;
  std::unique_ptr<Endpoint> endpoint;
  TimeNs now = 1'000'000;
};

}  // namespace mrc::core
