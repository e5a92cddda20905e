// Packets in: to the protocol, and their bytes to where it says. Under the engine lock.
#pragma once

#include <cstdint>
#include <span>

#include "nic/engine/pump_intake.h"
#include "nic/engine/pump_state.h"
#include "nic/mapped_memory.h"

namespace mrc::nic {

struct HeldByte;

class PumpReceive final : private Receiver {
 public:
  PumpReceive(PumpState& state, PumpIntake& intake) : state_(state), intake_(intake) {}

  // At most about `budget` packets; returns how many.
  unsigned run(unsigned budget);
  // Bytes held back for a region that goes.
  void forget_held(std::uint32_t remote_key);

 private:
  struct Target {
    std::byte* address = nullptr;
    std::span<const std::byte> payload;
  };

  void on_received(const Received& received) override;
  unsigned take(const Received& received);
  void on_dropped(DropReason reason) override;
  bool take_answer(const Received& received, const wire::Packet& packet);
  Address source_of(const Received& received, const wire::Packet& packet, const QueuePairImpl* qp);
  bool has_target(const QueuePairImpl& qp, const wire::Packet& packet, std::uint32_t length);
  void place(QueuePairImpl& qp, const core::Placement& placement, const wire::Packet& packet,
             std::span<const std::byte> payload);
  void place_run(QueuePairImpl& qp, const core::RxResult& result, const wire::Packet& first,
                 std::span<const std::byte> payload, std::size_t stride);
  void place_last_byte_last(QueuePairImpl& qp, const HeldByte& last, bool ends_message,
                            const Target& target);
  void store_held(QueuePairImpl& qp);

  PumpState& state_;
  PumpIntake& intake_;
  MappedMemory targets_;  // of packets received in this round
};

}  // namespace mrc::nic
