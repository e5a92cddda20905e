// A requester with paths and a congestion window that the test sets, and a peer that the test
// plays. Packets are called by their place in the stream: 0 is the first.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "core/requester.h"
#include "unit/core/path_set_fixture.h"

namespace mrc::core {

inline constexpr DurationNs kRoundTrip = 12 * kMicrosecondNs;
inline constexpr std::uint32_t kPathMtu = 1024;
inline constexpr Psn kFirstPsn{0xFF'FFFE};  // wraps after two packets
inline constexpr QpNumber kLocalQp{0x1'2345};
inline constexpr QpNumber kRemoteQp{0x5'4321};

// Writes down what it is told.
class RecordingController final : public CongestionController {
 public:
  void on_packet_sent(TimeNs, std::int64_t) override {}
  void on_ack(const AckSample& sample) override { acks.push_back(sample); }
  void on_trim(TimeNs, std::int64_t, bool last_hop) override { trims.push_back(last_hop); }
  void on_loss(TimeNs, std::int64_t bytes) override { lost_bytes += bytes; }
  void set_bandwidth(std::uint64_t) override {}
  std::int64_t window_bytes() const override { return window; }
  DurationNs base_rtt_ns() const override { return kRoundTrip; }
  void pace(TimeNs next_send) { next_send_ = next_send; }

  std::int64_t window = 1'000'000;
  std::int64_t lost_bytes = 0;
  std::vector<AckSample> acks;
  std::vector<bool> trims;  // at the last hop?
};

struct Sender {
  struct Options {
    QpReadyToSend rts{.first_psn = kFirstPsn};
    bool dynamic_mpr = false;
    bool network_trims = true;
    bool peer_tells_service_time = true;
    bool probes = true;
    DurationNs jitter_ns = 0;
    std::uint32_t max_sends = 16;
  };

  Sender() : Sender(Options{}) {}
  explicit Sender(const Options& options) : requester(options.max_sends) {
    links = {.paths = &paths.set,
             .cc = &cc,
             .line_heard_at = &line_heard_at,
             .counters = &counters,
             .probes = options.probes,
             .jitter_ns = options.jitter_ns};
    requester.start(0,
                    {.rts = options.rts,
                     .path_mtu = kPathMtu,
                     .dynamic_mpr = options.dynamic_mpr,
                     .network_trims = options.network_trims,
                     .peer_tells_service_time = options.peer_tells_service_time},
                    links);
  }

  // A write of so many full packets.
  void post(unsigned packets, std::uint64_t id = 1, TimeNs now = 0) {
    const SendRequest request{
        .id = id, .local_address = 0x100, .length = packets * kPathMtu, .remote_address = 0x1000};
    ASSERT_TRUE(requester.post(now, request).ok());
  }
  SendOutcome next(TimeNs now, TxPacket& out, PortMask ports = kAllPorts) {
    return requester.next_data(now, ports, kRemoteQp, 1, out);
  }
  // What leaves now, and how much that is.
  std::vector<TxPacket> send(TimeNs now, unsigned most = 1'000) {
    std::vector<TxPacket> packets;
    TxPacket out;
    while (packets.size() < most && next(now, out) == SendOutcome::kSent)
      packets.push_back(out);
    return packets;
  }
  SendOutcome probe(TimeNs now, TxPacket& out, PortMask ports = kAllPorts) {
    return requester.next_probe(now, ports, {kLocalQp, kRemoteQp}, out);
  }

  static Psn psn(std::uint32_t place) { return kFirstPsn + place; }
  static unsigned place(const TxPacket& packet) {
    return (packet.packet.bth.psn.value() - kFirstPsn.value()) & Psn::kMask;
  }
  std::uint32_t entropy(EvIndex ev) const { return paths.profile.entry(ev).entropy; }

  // The peer's answer to a packet: everything before `in_order` has arrived, and of what comes
  // behind that the packets named by `bitmap`, bit 0 being `in_order` itself.
  wire::Sack sack_for(const TxPacket& packet, unsigned in_order, std::uint64_t bitmap = 0) const {
    const auto* write = std::get_if<wire::Write>(&packet.packet.body);
    const int offset = static_cast<int>(place(packet)) - (static_cast<int>(in_order) - 1);
    const auto beyond = static_cast<unsigned>(std::popcount(bitmap));
    return {.offset_or_probe_id = static_cast<std::uint16_t>(offset),
            .entropy = entropy(packet.ev),
            .cumulative = psn(in_order) - 1,
            .bitmap_offset = 1,
            .bitmap = bitmap,
            .timestamp_ticks = write->timestamp.ticks,
            .out_of_order_count = static_cast<std::uint16_t>(beyond),
            .received_units = 4 * (in_order + beyond)};
  }
  DropReason sack(TimeNs now, const TxPacket& packet, unsigned in_order, std::uint64_t bitmap = 0) {
    return requester.on_sack(now, sack_for(packet, in_order, bitmap));
  }
  // So many messages are complete, and everything before `in_order` has arrived.
  Requester::Outcome ack(TimeNs now, unsigned in_order, std::uint32_t messages) {
    return requester.on_ack(now, psn(in_order) - 1,
                            {.syndrome = wire::kSyndromeAck, .msn = messages});
  }
  Requester::Outcome nak(TimeNs now, unsigned at, std::uint8_t syndrome) {
    return requester.on_ack(now, psn(at), {.syndrome = syndrome});
  }
  Requester::Outcome nack(TimeNs now, const TxPacket& packet, wire::NackReason reason) {
    return requester.on_nack(
        now, {.reason = reason,
              .entropy = entropy(packet.ev),
              .psn = packet.packet.bth.psn,
              .timestamp_ticks = std::get_if<wire::Write>(&packet.packet.body)->timestamp.ticks});
  }
  std::vector<Completion> completions() {
    std::vector<Completion> all;
    Completion one;
    while (requester.pop_completion(one))
      all.push_back(one);
    return all;
  }

  Paths paths{2, 4};  // EV i on port 1 + i % 2
  RecordingController cc;
  TimeNs line_heard_at = 0;
  QpCounters counters;
  RequesterLinks links;
  Requester requester;
};

}  // namespace mrc::core
