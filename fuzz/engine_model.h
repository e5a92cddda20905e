// One endpoint under fuzzing and a plain model of what it may do. Every call goes through here and
// is checked against the model; a fault ends the program with a sentence that says what was wrong.
// The input decides which verb of the driver is next, so nothing here pumps.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <optional>
#include <variant>

#include "core/endpoint.h"
#include "support/engine_driver.h"

namespace mrc::fuzz {

inline void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "engine: %s\n", what);
  std::abort();
}

inline constexpr unsigned kQps = 2;
inline constexpr unsigned kEventCapacity = 8;
inline constexpr std::array<QpNumber, kQps> kQpNumbers{QpNumber{0x111}, QpNumber{0x222}};

// How the endpoints and queue pairs of one input are set up.
struct Shape {
  unsigned ports = 2;
  unsigned evs = 4;
  std::uint32_t mtu = 256;
  std::uint8_t window_units = 1;
  std::uint32_t max_sends = 4;
  std::uint32_t max_receives = 4;
  std::uint16_t max_immediates = 4;
  std::uint32_t sack_threshold_bytes = 0;
  std::uint8_t timeout = 4;
  std::uint8_t exponential_retries = 2;
  unsigned control_capacity = 16;
  core::CcAlgorithm algorithm = core::CcAlgorithm::kNscc;
  bool dynamic_mpr = false;
  bool trim_nack = true;
  bool two_peers = false;  // the second queue pair sees the other side under another address
};

struct Region {
  core::MemoryRegion memory;
  Rkey key{};
  bool live = false;
};

// What is known about one queue pair since its last reset.
struct QpModel {
  struct Send {
    std::uint64_t id = 0;
    std::uint32_t number = 0;  // counts from 1, as ACKs do
    bool signaled = true;
    bool with_immediate = false;
  };
  // What every transmission of a packet must have in common.
  struct Sent {
    wire::Opcode opcode{};
    std::uint64_t local_address = 0;
    std::uint32_t payload_length = 0;
    wire::Write write;
    friend bool operator==(const Sent&, const Sent&) = default;
  };
  struct Accepted {
    bool ends_message = false;
    bool has_immediate = false;
    std::uint16_t receive_msn = 0;
    std::uint32_t immediate = 0;
  };
  std::deque<Send> sends;
  std::deque<std::uint64_t> receives;
  std::map<std::uint32_t, Accepted> accepted;  // by PSN
  std::map<std::uint32_t, Sent> sent;          // by PSN
  std::uint64_t immediates_reported = 0;
  std::uint64_t immediates_done = 0;  // of our own sends
  std::uint32_t posted = 0;
  std::uint32_t acknowledged = 0;  // the most messages that an ACK could make us believe are done
  bool send_failed = false;
  Psn expected_psn;  // the first that has not arrived
  Psn next_psn;      // next new one to send
};

class Side : public test::EngineWorld {
 public:
  static constexpr unsigned kRegions = 4;

  Side(int index, const Shape& shape, const core::EvProfile& profile);

  core::Endpoint& endpoint() { return driver_.engine(); }
  const Region& region(unsigned i) const { return regions_[i % kRegions]; }
  core::QpStatus status(unsigned qp) const {
    return driver_.engine().query_qp(kQpNumbers[qp]).value();
  }
  const QpModel& model(unsigned qp) const { return models_[qp]; }

  // The name of side `index` as queue pair `qp` of the other side knows it.
  static Address address(int index, unsigned qp, const Shape& shape) {
    const std::uint64_t base = shape.two_peers && qp == 1 ? 11 : 1;
    return {0, base + static_cast<std::uint64_t>(index)};
  }

  void connect(TimeNs now, unsigned qp, Psn first_psn);
  void forget(unsigned qp) { models_[qp] = {}; }
  void renew_region(unsigned i, bool invalidate_only);

  void post_send(TimeNs now, unsigned qp, core::SendRequest request);
  void post_receive(unsigned qp);
  void on_packet(TimeNs now, const core::Arrival& arrival, const wire::Packet& packet);
  void on_corrupt_packet(TimeNs now, const core::Arrival& arrival, const wire::Packet& packet) {
    driver_.deliver_corrupt(now, arrival, packet);
  }
  void on_timer(TimeNs now) { driver_.fire(now); }
  bool pull(TimeNs now, PortMask free_ports, core::TxPacket& out);
  void poll();
  // What must hold between any two calls. Completions have been polled.
  void check_state(TimeNs now) const;

  // For the driver.
  void on_completion(const core::Completion& completion);
  void on_event(const core::Event& event);

 private:
  static int qp_index(QpNumber number);
  void finish_silently(unsigned qp);
  void note_ack(unsigned qp, const wire::Packet& packet);
  void add_region(unsigned i);
  void check_arrival(const core::Arrival& arrival, const wire::Packet& packet, Psn next,
                     const core::RxResult& result);
  void check_placement(unsigned qp, const wire::Write& write, const core::Arrival& arrival,
                       const core::Placement& placement) const;
  void note_accepted(unsigned qp, const wire::Packet& packet);
  void check_sent_data(unsigned qp, const core::TxPacket& out);
  void check_sent_sack(unsigned qp, const core::TxPacket& out) const;
  void check_sent_ack(unsigned qp, const core::TxPacket& out) const;
  void check_send_completion(unsigned qp, const core::Completion& completion);
  void check_receive_completion(unsigned qp, const core::Completion& completion);
  void check_books() const;

  int index_;
  const Shape& shape_;
  const core::EvProfile& profile_;
  test::SeededKeys keys_{0x5EED};
  test::EngineDriver<Side> driver_{*this};
  std::array<Region, kRegions> regions_;
  std::array<QpModel, kQps> models_;
  std::uint64_t next_id_ = 1;
  unsigned completions_polled_ = 0;  // since poll() began
  unsigned events_polled_ = 0;
};

// --- Set-up ---

inline Side::Side(int index, const Shape& shape, const core::EvProfile& profile)
    : index_(index), shape_(shape), profile_(profile) {
  check(driver_
            .start({.address = address(index, 0, shape),
                    .port_count = shape.ports,
                    .seed = static_cast<std::uint64_t>(index) + 5,
                    .max_qps = kQps,
                    .max_peers = kQps,
                    .max_regions = kRegions,
                    .event_capacity = kEventCapacity,
                    .control_capacity = shape.control_capacity,
                    .endpoint_request_capacity = 2,
                    .strict = shape.window_units % 2 == 0})
            .ok(),
        "an endpoint cannot be created");
  regions_[0].memory = {0x1'0000, 0x8000, ProtectionDomain{0}, true};
  regions_[1].memory = {0x1'4000, 0x8000, ProtectionDomain{1}, true};
  regions_[2].memory = {0x1'0000, 0x8000, ProtectionDomain{0}, false};
  regions_[3].memory = {~std::uint64_t{0} - 0xFFF, 0x1000, ProtectionDomain{0}, true};
  for (unsigned i = 0; i < kRegions; ++i)
    add_region(i);
}

inline void Side::add_region(unsigned i) {
  regions_[i].key = endpoint().register_memory(regions_[i].memory, keys_).value();
  regions_[i].live = true;
}

// Invalidates the region's key, or gives a dead region a new one.
inline void Side::renew_region(unsigned i, bool invalidate_only) {
  Region& region = regions_[i % kRegions];
  if (region.live) {
    check(endpoint().invalidate_memory(region.key).ok(), "a live key cannot be invalidated");
    region.live = false;
  }
  if (!invalidate_only) add_region(i % kRegions);
}

inline void Side::connect(TimeNs now, unsigned qp, Psn first_psn) {
  const QpNumber number = kQpNumbers[qp];
  check(endpoint()
            .init_qp(number, {.ev_profile = &profile_, .cc = {.algorithm = shape_.algorithm}})
            .ok(),
        "INIT refused");
  check(endpoint()
            .ready_to_receive(number, {.remote = address(1 - index_, qp, shape_),
                                       .remote_qp = number,
                                       .first_psn = first_psn,
                                       .path_mtu = shape_.mtu,
                                       .max_wimm_dest = shape_.max_immediates,
                                       .mpr_dest = shape_.window_units,
                                       .dynamic_mpr = shape_.dynamic_mpr,
                                       .trim_nack = shape_.trim_nack,
                                       .sack_threshold_bytes = shape_.sack_threshold_bytes})
            .ok(),
        "RTR refused");
  check(endpoint()
            .ready_to_send(now, number,
                           {.first_psn = first_psn,
                            .max_wimm = shape_.max_immediates,
                            .mpr = shape_.window_units,
                            .timeout = shape_.timeout,
                            .linear_retries = 1,
                            .exponential_retries = shape_.exponential_retries})
            .ok(),
        "RTS refused");
  models_[qp] = {};
  models_[qp].expected_psn = models_[qp].next_psn = first_psn;
}

// --- Work ---

inline void Side::post_send(TimeNs now, unsigned qp, core::SendRequest request) {
  request.id = next_id_++;
  if (!endpoint().post_send(now, kQpNumbers[qp], request).ok()) return;
  QpModel& model = models_[qp];
  model.sends.push_back({.id = request.id,
                         .number = ++model.posted,
                         .signaled = request.signaled,
                         .with_immediate = request.with_immediate});
}

inline void Side::post_receive(unsigned qp) {
  const std::uint64_t id = next_id_++;
  if (endpoint().post_receive(kQpNumbers[qp], {.id = id}).ok()) {
    models_[qp].receives.push_back(id);
  }
}

inline int Side::qp_index(QpNumber number) {
  for (unsigned i = 0; i < kQps; ++i) {
    if (kQpNumbers[i] == number) return static_cast<int>(i);
  }
  return -1;
}

inline void Side::poll() {
  completions_polled_ = 0;
  events_polled_ = 0;
  driver_.drain_completions();
  for (unsigned qp = 0; qp < kQps; ++qp) {
    const std::uint32_t left = status(qp).sends_outstanding;
    check(left <= models_[qp].sends.size(), "sends that nobody posted");
    while (models_[qp].sends.size() > left)
      finish_silently(qp);
  }
  driver_.drain_events();
}

inline void Side::on_completion(const core::Completion& completion) {
  check(completions_polled_++ < kQps * (shape_.max_sends + shape_.max_receives),
        "completions without end");
  const int qp = qp_index(completion.qp);
  check(qp >= 0, "completion of an unknown queue pair");
  if (completion.kind == core::CompletionKind::kSend) {
    check_send_completion(static_cast<unsigned>(qp), completion);
  } else {
    check_receive_completion(static_cast<unsigned>(qp), completion);
  }
}

inline void Side::on_event(const core::Event&) {
  check(events_polled_++ < kEventCapacity, "events without end");
}

// The oldest send is done and nothing was said about it.
inline void Side::finish_silently(unsigned qp) {
  QpModel& model = models_[qp];
  const QpModel::Send send = model.sends.front();
  check(!send.signaled, "a send completion was skipped or came twice");
  check(!model.send_failed, "a failed send was not reported");
  check(send.number <= model.acknowledged, "a send that no ACK covers vanished");
  model.immediates_done += send.with_immediate ? 1 : 0;
  model.sends.pop_front();
}

inline void Side::check_send_completion(unsigned qp, const core::Completion& completion) {
  QpModel& model = models_[qp];
  while (!model.sends.empty() && model.sends.front().id != completion.id)
    finish_silently(qp);
  check(!model.sends.empty(), "completion of a send that is not outstanding");
  const QpModel::Send send = model.sends.front();
  model.sends.pop_front();
  if (completion.status != core::CompletionStatus::kSuccess) {
    model.send_failed = true;
    return;
  }
  check(send.signaled, "an unsignaled success was reported");
  check(!model.send_failed, "success after a failed send");
  check(send.number <= model.acknowledged, "success of a send that no ACK covers");
  model.immediates_done += send.with_immediate ? 1 : 0;
}

inline void Side::check_receive_completion(unsigned qp, const core::Completion& completion) {
  QpModel& model = models_[qp];
  check(!model.receives.empty() && model.receives.front() == completion.id,
        "receive completions are out of order");
  model.receives.pop_front();
  if (completion.status != core::CompletionStatus::kSuccess) return;
  const auto expected = static_cast<std::uint16_t>(model.immediates_reported++);
  for (const auto& [psn, packet] : model.accepted) {
    if (packet.has_immediate && packet.receive_msn == expected) {
      check(packet.immediate == completion.immediate, "a receive got another one's immediate");
      return;
    }
  }
  check(false, "an immediate was delivered that had not arrived");
}

// --- Arrivals ---

inline void Side::on_packet(TimeNs now, const core::Arrival& arrival, const wire::Packet& packet) {
  const int qp = qp_index(packet.bth.destination);
  if (qp >= 0) note_ack(static_cast<unsigned>(qp), packet);
  const Psn next = qp >= 0 ? models_[static_cast<unsigned>(qp)].next_psn : Psn();
  driver_.deliver(now, arrival, packet, [&](const core::RxResult& result) {
    check_arrival(arrival, packet, next, result);
  });
}

// `next` is the next PSN to send, before the packet came.
inline void Side::check_arrival(const core::Arrival& arrival, const wire::Packet& packet, Psn next,
                                const core::RxResult& result) {
  const int qp = qp_index(packet.bth.destination);
  const auto* write = std::get_if<wire::Write>(&packet.body);
  const bool placed = result.placement.length > 0;
  check(!placed || (write != nullptr && qp >= 0 && result.drop == DropReason::kNone),
        "a packet that was not accepted has a placement");
  if (qp >= 0 && result.drop == DropReason::kNone) {
    check(arrival.source == address(1 - index_, static_cast<unsigned>(qp), shape_),
          "a packet of a stranger was accepted");
    const auto* sack = std::get_if<wire::Sack>(&packet.body);
    check(sack == nullptr || sack->cumulative.distance_from(next) < 0,
          "a SACK for what was never sent was believed");
  }
  if (write == nullptr || result.drop != DropReason::kNone) return;
  check(arrival.trim == core::TrimState::kWhole, "a trimmed packet was accepted");
  check(arrival.refusal == core::CallerRefusal::kNone, "a refused packet was accepted");
  check_placement(static_cast<unsigned>(qp), *write, arrival, result.placement);
  note_accepted(static_cast<unsigned>(qp), packet);
}

inline void Side::note_ack(unsigned qp, const wire::Packet& packet) {
  const auto* ack = std::get_if<wire::Ack>(&packet.body);
  QpModel& model = models_[qp];
  if (ack == nullptr || ack->syndrome != wire::kSyndromeAck || ack->msn > model.posted) return;
  model.acknowledged = std::max(model.acknowledged, ack->msn);
}

inline void Side::check_placement(unsigned qp, const wire::Write& write,
                                  const core::Arrival& arrival,
                                  const core::Placement& placement) const {
  check(placement.length == arrival.payload_length, "part of a payload was placed");
  if (placement.length == 0) return;
  check(placement.address == write.address, "payload was placed elsewhere");
  for (const Region& region : regions_) {
    if (!region.live || region.key != write.key) continue;
    const core::MemoryRegion& memory = region.memory;
    check(memory.remote_write, "placed without the right to write");
    check(memory.domain == ProtectionDomain{qp}, "placed across protection domains");
    check(placement.address >= memory.address &&
              placement.address - memory.address <= memory.length - placement.length,
          "placed outside the region");
    return;
  }
  check(false, "placed with a key that is not live");
}

inline void Side::note_accepted(unsigned qp, const wire::Packet& packet) {
  const auto& write = *std::get_if<wire::Write>(&packet.body);
  const QpModel::Accepted entry{.ends_message = wire::ends_message(packet.bth.opcode),
                                .has_immediate = wire::has_immediate(packet.bth.opcode),
                                .receive_msn = write.receive_msn,
                                .immediate = write.immediate};
  const bool is_new = models_[qp].accepted.emplace(packet.bth.psn.value(), entry).second;
  check(is_new, "a PSN was accepted twice");
  QpModel& model = models_[qp];
  while (model.accepted.contains(model.expected_psn.value()))
    model.expected_psn = model.expected_psn + 1;
}

// --- Departures ---

inline bool Side::pull(TimeNs now, PortMask free_ports, core::TxPacket& out) {
  if (!driver_.take(now, free_ports, out)) return false;
  if (out.packet.bth.destination == kEndpointQp) return true;
  const int index = qp_index(out.local_qp);
  check(index >= 0, "sent by an unknown queue pair");
  const auto qp = static_cast<unsigned>(index);
  check(out.destination == address(1 - index_, qp, shape_), "sent to somebody else");
  check(out.profile == &profile_ && static_cast<unsigned>(out.ev) < profile_.size() &&
            profile_.port(out.ev) == out.port && profile_.entry(out.ev).entropy == out.entropy,
        "path, port and entropy disagree");
  if (wire::is_write(out.packet.bth.opcode)) check_sent_data(qp, out);
  if (std::holds_alternative<wire::Sack>(out.packet.body)) check_sent_sack(qp, out);
  if (std::holds_alternative<wire::Ack>(out.packet.body)) check_sent_ack(qp, out);
  return true;
}

inline void Side::check_sent_data(unsigned qp, const core::TxPacket& out) {
  QpModel& model = models_[qp];
  const core::QpStatus now_status = status(qp);
  const Psn psn = out.packet.bth.psn;
  check(now_status.state == core::QpState::kReadyToSend, "data from a queue pair not in RTS");
  check(out.payload_length <= shape_.mtu, "payload is longer than the MTU");
  check(psn.distance_from(now_status.oldest_unacknowledged) >= 0, "an acknowledged PSN was sent");
  check(psn.distance_from(now_status.oldest_unacknowledged) <
            static_cast<std::int32_t>(shape_.window_units * core::kWindowUnitPsns),
        "sent beyond the PSN window");
  QpModel::Sent sent{.opcode = out.packet.bth.opcode,
                     .local_address = out.local_address,
                     .payload_length = out.payload_length,
                     .write = *std::get_if<wire::Write>(&out.packet.body)};
  sent.write.timestamp = {};
  if (out.packet.bth.retransmission) {
    check(psn.distance_from(model.next_psn) < 0, "a retransmission of what was never sent");
    check(model.sent.at(psn.value()) == sent, "a retransmission differs from the first time");
  } else {
    check(psn == model.next_psn, "new data out of order");
    model.next_psn = model.next_psn + 1;
    model.sent[psn.value()] = sent;
    check(!wire::has_immediate(sent.opcode) ||
              sent.write.receive_msn < model.immediates_done + shape_.max_immediates,
          "more immediates in flight than agreed");
  }
  check(now_status.next_psn == model.next_psn, "next_psn disagrees with what was sent");
}

inline void Side::check_sent_sack(unsigned qp, const core::TxPacket& out) const {
  const core::QpStatus now_status = status(qp);
  if (now_status.state == core::QpState::kError) return;
  const auto& sack = *std::get_if<wire::Sack>(&out.packet.body);
  check(sack.cumulative + 1 == now_status.expected_psn, "a SACK with another left edge");
  for (unsigned bit = 0; bit < 64; ++bit) {
    if (((sack.bitmap >> bit) & 1) == 0) continue;
    const Psn psn(sack.cumulative.value() + static_cast<std::uint32_t>(sack.bitmap_offset) + bit);
    check(psn.distance_from(sack.cumulative) <= 0 || models_[qp].accepted.contains(psn.value()),
          "a SACK claims what did not arrive");
  }
}

inline void Side::check_sent_ack(unsigned qp, const core::TxPacket& out) const {
  const core::QpStatus now_status = status(qp);
  const auto& ack = *std::get_if<wire::Ack>(&out.packet.body);
  if (now_status.state == core::QpState::kError || ack.syndrome != wire::kSyndromeAck) return;
  std::uint32_t closed = 0;
  for (const auto& [psn, packet] : models_[qp].accepted) {
    const bool below = Psn(psn).distance_from(now_status.expected_psn) < 0;
    closed += packet.ends_message && below ? 1 : 0;
  }
  check(ack.msn == closed, "an ACK counts other messages than those that arrived");
}

// --- State ---

inline void Side::check_state(TimeNs) const {
  for (unsigned qp = 0; qp < kQps; ++qp) {
    const core::QpStatus s = status(qp);
    const QpModel& model = models_[qp];
    check(s.sends_outstanding <= shape_.max_sends, "more sends than the queue holds");
    check(s.receives_outstanding == model.receives.size(), "receives lost or invented");
    check(s.good_evs + s.bad_evs <= static_cast<int>(shape_.evs), "more EVs than there are");
    if (s.state == core::QpState::kError) {
      check(s.sends_outstanding == 0 && s.receives_outstanding == 0, "work left in ERROR");
    }
    if (s.state != core::QpState::kReadyToSend) continue;
    check(s.expected_psn == model.expected_psn, "the left edge is not where packets are missing");
    const auto range = s.next_psn.distance_from(s.oldest_unacknowledged);
    check(range >= 0 && range <= static_cast<std::int32_t>(shape_.window_units * 128),
          "the send window is wider than agreed");
    check(s.packets_in_flight + s.packets_lost <= static_cast<std::uint32_t>(range),
          "more packets in flight than were sent");
    // A queue pair that backs off has given back the bytes of what it has in flight.
    check(s.packets_in_flight != 0 || s.bytes_in_flight == 0, "bytes in flight without packets");
    check(s.bytes_in_flight >= 0 && s.bytes_in_flight <= s.peer_bytes_in_flight,
          "more bytes in flight than the controller knows of");
    check(s.window_bytes >= shape_.mtu, "a congestion window below one packet");
    check(s.window_psns > 0 && s.window_psns <= shape_.window_units * core::kWindowUnitPsns,
          "the PSN window left its bounds");
    check(s.sends_outstanding == 0 || driver_.engine().next_deadline() != kNever,
          "work outstanding and no deadline");
  }
  check_books();
}

// The controller's bytes in flight are those of its queue pairs.
inline void Side::check_books() const {
  std::int64_t all = 0;
  std::optional<std::int64_t> shared;
  for (unsigned qp = 0; qp < kQps; ++qp) {
    const core::QpStatus s = status(qp);
    if (s.state == core::QpState::kReset || s.state == core::QpState::kInit) continue;
    all += s.bytes_in_flight;
    if (shape_.two_peers) {
      check(s.bytes_in_flight == s.peer_bytes_in_flight, "the controller miscounts its flight");
    } else {
      shared = s.peer_bytes_in_flight;
    }
  }
  check(!shared || *shared == all, "the shared controller miscounts its flight");
}

}  // namespace mrc::fuzz
