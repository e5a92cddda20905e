// Two endpoints, the network between them and a forger, all driven by the bytes of one input.
//
// Side 0 sends, side 1 receives; both are honest engines, so that deep states are reached. The
// input decides what the network does to their packets, which forged packets arrive in between,
// what the programs and the controller do, and how time passes. Side (engine_model.h) checks every
// step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/endpoint.h"
#include "fuzz/engine_forge.h"
#include "fuzz/engine_model.h"
#include "fuzz/fuzz_support.h"

namespace mrc::fuzz {

enum class Action : std::uint8_t {
  kExchange,  // everything in the network arrives, in order, and both sides answer
  kDeliver,   // one packet arrives, perhaps damaged
  kLose,
  kPull,
  kWait,
  kTimer,
  kPostSend,
  kPostReceive,
  kForgeWrite,
  kForgeSack,
  kForgeNack,
  kForgeAck,
  kForgeOther,  // probes, endpoint operations, feedback for the wrong queue pair
  kPort,
  kDeny,
  kMemory,
  kWindow,
  kEndpointProbe,
  kFail,
  kReconnect,
};

class EngineHarness {
 public:
  // `target` is the side that forged packets go to.
  EngineHarness(Input& in, int target)
      : in_(in), target_(target), shape_(read_shape(in)), profile_(make_profile(shape_)) {
    for (int i : {0, 1}) {
      for (unsigned qp = 0; qp < kQps; ++qp) {
        check(side(i)
                  .endpoint()
                  .create_qp({.number = kQpNumbers[qp],
                              .domain = ProtectionDomain{qp},
                              .max_sends = shape_.max_sends,
                              .max_receives = shape_.max_receives})
                  .ok(),
              "a queue pair cannot be created");
        side(i).connect(now_, qp, Psn(0xFF'FFF0));
      }
    }
  }

  // Runs actions drawn from `menu` until the input is used up.
  template <std::size_t N>
  void run(const std::array<Action, N>& menu) {
    for (unsigned n = 0; n < kMaxActions && !in_.empty(); ++n) {
      perform(menu[in_.u8() % N]);
      for (Side& s : sides_) {
        s.poll();
        s.check_state(now_);
      }
    }
  }

 private:
  static constexpr unsigned kMaxActions = 512;
  static constexpr std::size_t kMaxFlights = 512;
  // Far more packets than two windows, all answers and all probes together.
  static constexpr unsigned kMaxPull = 4096;

  struct Flight {
    int to = 0;
    core::TxPacket packet;
  };

  Side& side(int i) { return sides_[static_cast<std::size_t>(i)]; }

  static Shape read_shape(Input& in) {
    const std::uint8_t a = in.u8();
    const std::uint8_t b = in.u8();
    const std::uint8_t c = in.u8();
    Shape shape;
    shape.ports = 1U + (a & 3);
    shape.evs = shape.ports * (1U + ((a >> 2) & 3));
    shape.two_peers = (a & 16) != 0;
    shape.dynamic_mpr = (a & 32) != 0;
    shape.trim_nack = (a & 64) == 0;
    shape.algorithm = (a & 128) != 0 ? core::CcAlgorithm::kNone : core::CcAlgorithm::kNscc;
    shape.window_units = static_cast<std::uint8_t>(1 + (b & 1));
    shape.max_sends = 1U + ((b >> 1) & 7);
    shape.max_receives = (b >> 4) & 7;
    shape.mtu = (b & 128) != 0 ? 1028 : 256;
    shape.max_immediates = c & 7;
    shape.sack_threshold_bytes = (c & 8) != 0 ? 2048 : 0;
    shape.timeout = static_cast<std::uint8_t>((c & 16) != 0 ? 0 : 5);
    shape.exponential_retries = (c & 32) != 0 ? core::kMaxExponentialRetries : 1;
    shape.control_capacity = (c & 64) != 0 ? 2 : 64;
    return shape;
  }

  static core::EvProfile make_profile(const Shape& shape) {
    std::vector<core::EvEntry> entries;
    for (unsigned i = 0; i < shape.evs; ++i) {
      entries.push_back({0x40 + i, static_cast<PortId>(i % shape.ports + 1)});
    }
    return core::EvProfile::create(entries).value();
  }

  unsigned pick_qp() { return in_.u8() % 4 == 3 ? 1 : 0; }
  PortMask pick_ports() {
    const std::uint8_t bits = in_.u8();
    return bits < 128 ? PortMask::first(shape_.ports) : PortMask(bits & 15U);
  }
  std::uint32_t pick_entropy() {
    const std::uint8_t pick = in_.u8();
    return pick < 0xF0 ? 0x40 + pick % shape_.evs : in_.u32();
  }

  void perform(Action action) {
    const unsigned qp = pick_qp();
    switch (action) {
      case Action::kExchange:
        return exchange();
      case Action::kDeliver:
        return deliver_one(false);
      case Action::kLose:
        return deliver_one(true);
      case Action::kPull:
        return pull(in_.u8() % 2, pick_ports(), 1U + in_.u8());
      case Action::kWait:
        return wait();
      case Action::kTimer:
        return run_timers();
      case Action::kPostSend:
        return post_send(qp);
      case Action::kPostReceive:
        return side(1).post_receive(qp);
      case Action::kForgeWrite:
      case Action::kForgeSack:
      case Action::kForgeNack:
      case Action::kForgeAck:
      case Action::kForgeOther:
        return forge(action, qp);
      case Action::kFail:
        return fail(qp);
      case Action::kReconnect:
        return reconnect(qp);
      default:
        return control(action, qp);
    }
  }

  // What a program or controller does at run time.
  void control(Action action, unsigned qp) {
    Side& s = side(in_.u8() % 2);
    core::Endpoint& endpoint = s.endpoint();
    const std::uint8_t value = in_.u8();
    if (action == Action::kPort) {
      const auto port = static_cast<PortId>(1 + (value >> 1) % shape_.ports);
      check(endpoint.set_port_up(now_, port, (value & 1) != 0).ok(), "set_port_up refused");
    } else if (action == Action::kDeny) {
      const auto ev = static_cast<EvIndex>((value >> 1) % shape_.evs);
      const bool in_reset = s.status(qp).state == core::QpState::kReset;
      const Status set = endpoint.set_ev_denied(now_, kQpNumbers[qp], ev, (value & 1) != 0);
      check(set.ok() != in_reset, "set_ev_denied refused, or accepted in RESET");
    } else if (action == Action::kMemory) {
      s.renew_region(value >> 1, (value & 1) != 0);
    } else if (action == Action::kWindow) {
      const std::uint8_t units = value % 4;
      const core::ReceiverPenalty penalty{.value = static_cast<std::uint8_t>(value >> 2),
                                          .restore = (value & 1) != 0};
      const Status set = endpoint.set_receive_window(kQpNumbers[qp], units, penalty);
      check(!set.ok() || shape_.dynamic_mpr || units == shape_.window_units,
            "dynamic MPR was set without being agreed");
    } else {
      const Status sent =
          endpoint.send_endpoint_probe(now_, {.peer = Side::address(0, qp, shape_),
                                              .port = static_cast<PortId>(value % 5),
                                              .entropy = value,
                                              .request_id = static_cast<std::uint16_t>(value >> 6),
                                              .timeout_ns = 1'000 * (value - 1)});
      check(!sent.ok() || value > 1, "a probe without time was accepted");
    }
  }

  // --- Network

  void pull(int from, PortMask ports, unsigned limit) {
    core::TxPacket packet;
    for (unsigned n = 0; n < limit && side(from).pull(now_, ports, packet); ++n) {
      check(n < kMaxPull, "packets without end");
      if (network_.size() == kMaxFlights) network_.erase(network_.begin());
      network_.push_back({1 - from, packet});
    }
  }

  core::Arrival arrival_of(const Flight& flight) const {
    const int from = 1 - flight.to;
    const unsigned as = flight.packet.destination == Side::address(flight.to, 0, shape_) ? 0 : 1;
    return test::arrival_of(flight.packet, Side::address(from, as, shape_));
  }

  void exchange() {
    for (int i : {0, 1})
      pull(i, PortMask::first(shape_.ports), kMaxPull + 1);
    now_ += 500;
    std::vector<Flight> arriving;
    arriving.swap(network_);
    for (const Flight& flight : arriving)
      side(flight.to).on_packet(now_, arrival_of(flight), flight.packet.packet);
    now_ += 500;
  }

  void deliver_one(bool lose) {
    const std::uint8_t where = in_.u8();
    if (network_.empty()) return;
    const std::size_t at = where % network_.size();
    const Flight flight = network_[at];
    const std::uint8_t flags = in_.u8();
    if (lose || (flags & 1) == 0) network_.erase(network_.begin() + static_cast<long>(at));
    if (lose) return;
    core::Arrival arrival = arrival_of(flight);
    wire::Packet packet = flight.packet.packet;
    arrival.congestion_experienced = (flags & 2) != 0;
    if ((flags & 4) != 0) arrival.refusal = core::CallerRefusal::kNoPacketBuffer;
    if ((flags & 8) != 0) arrival.refusal = core::CallerRefusal::kNoResource;
    if ((flags & 16) != 0) {
      if (wire::is_write(packet.bth.opcode)) trim(packet, arrival, (flags & 32) != 0);
    } else if ((flags & 64) != 0) {
      side(flight.to).on_corrupt_packet(now_, arrival, packet);
      return;
    }
    side(flight.to).on_packet(now_, arrival, packet);
  }

  // What is left when a switch has cut the payload: see parse_trimmed_transport.
  static void trim(wire::Packet& packet, core::Arrival& arrival, bool last_hop) {
    auto& write = *std::get_if<wire::Write>(&packet.body);
    write.address = 0;
    write.key = Rkey{0};
    write.message_length = 0;
    write.immediate = 0;
    arrival.payload_length = 0;
    arrival.trim = last_hop ? core::TrimState::kTrimmedLastHop : core::TrimState::kTrimmed;
  }

  void forge(Action action, unsigned qp) {
    Side& victim = side(target_);
    core::Arrival arrival{.source = Side::address(1 - target_, qp, shape_),
                          .port = static_cast<PortId>(1 + in_.u8() % shape_.ports),
                          .entropy = pick_entropy()};
    const std::uint8_t oddity = in_.u8();
    if (oddity > 0xF8) arrival.port = static_cast<PortId>(oddity % 2 == 0 ? 0 : 17);
    if (oddity < 4) arrival.source.low += oddity;
    arrival.congestion_experienced = oddity % 5 == 0;
    wire::Packet packet;
    if (action == Action::kForgeWrite) {
      packet = forge_write(in_, victim, qp, shape_, arrival.payload_length);
      if (oddity % 16 == 8) trim(packet, arrival, oddity > 128);
    } else if (action == Action::kForgeSack) {
      packet = forge_sack(in_, victim, qp, arrival.entropy);
    } else if (action == Action::kForgeNack) {
      packet = forge_nack(in_, victim, qp, arrival.entropy);
    } else if (action == Action::kForgeAck) {
      packet = forge_ack(in_, victim, qp);
    } else {
      packet = in_.u8() % 2 == 0 ? forge_probe(in_, qp) : forge_endpoint_operation(in_);
    }
    victim.on_packet(now_, arrival, packet);
  }

  // --- Time

  void wait() {
    constexpr std::array<DurationNs, 10> kSpans{
        1, 130, 1'000, 2'500, 20'000, 100'000, kMillisecondNs, kSecondNs, 40 * kSecondNs, 0};
    const std::uint8_t pick = in_.u8();
    if (pick < 128) {
      const TimeNs deadline = side(pick % 2).endpoint().next_deadline();
      if (deadline != kNever) now_ = std::max(now_, deadline);
    } else {
      now_ += kSpans[pick % kSpans.size()];
    }
    run_timers();
  }

  void run_timers() {
    for (Side& s : sides_)
      s.on_timer(now_);
  }

  // --- Programs

  void post_send(unsigned qp) {
    const std::uint8_t flags = in_.u8();
    const std::uint32_t mtu = shape_.mtu;
    const std::array<std::uint32_t, 12> lengths{0,
                                                1,
                                                mtu - 1,
                                                mtu,
                                                mtu + 1,
                                                3 * mtu,
                                                7 * mtu + 5,
                                                20 * mtu,
                                                40 * mtu,
                                                4,
                                                core::kMaxMessageBytes,
                                                core::kMaxMessageBytes + 1};
    const Region& region = side(1).region(flags < 0xE0 ? qp : flags);
    side(0).post_send(now_, qp,
                      {.local_address = 0x100,
                       .length = lengths[in_.u8() % lengths.size()],
                       .remote_address = region.memory.address,
                       .remote_key = region.key,
                       .with_immediate = (flags & 1) != 0,
                       .immediate = flags,
                       .signaled = (flags & 6) != 0});
  }

  void fail(unsigned qp) {
    Side& s = side(in_.u8() % 2);
    const bool in_reset = s.status(qp).state == core::QpState::kReset;
    const Status failed = s.endpoint().fail_qp(now_, kQpNumbers[qp]);
    check(failed.ok() != in_reset, "fail_qp refused, or accepted in RESET");
  }

  void reconnect(unsigned qp) {
    const std::uint8_t flags = in_.u8();
    const Psn first(in_.u32());
    for (int i : {0, 1}) {
      if ((flags & (1 << i)) != 0) continue;
      core::Endpoint& endpoint = side(i).endpoint();
      if ((flags & 4) != 0) {
        check(endpoint.destroy_qp(kQpNumbers[qp]).ok(), "destroy_qp refused");
        check(endpoint
                  .create_qp({.number = kQpNumbers[qp],
                              .domain = ProtectionDomain{qp},
                              .max_sends = shape_.max_sends,
                              .max_receives = shape_.max_receives})
                  .ok(),
              "a number cannot be used again");
      } else {
        check(endpoint.reset_qp(kQpNumbers[qp]).ok(), "reset_qp refused");
      }
      side(i).forget(qp);
      if ((flags & 8) == 0) side(i).connect(now_, qp, first);
    }
  }

  Input& in_;
  int target_;
  Shape shape_;
  core::EvProfile profile_;
  std::array<Side, 2> sides_{Side(0, shape_, profile_), Side(1, shape_, profile_)};
  std::vector<Flight> network_;
  TimeNs now_ = 1'000;
};

}  // namespace mrc::fuzz
