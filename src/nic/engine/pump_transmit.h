// Packets out: from what the protocol wants to send to the back end. Under the engine lock.
#pragma once

#include <array>
#include <cstdint>

#include "core/tx_packet.h"
#include "nic/engine/pump_state.h"
#include "nic/mapped_memory.h"

namespace mrc::nic {

class PumpTransmit {
 public:
  // `fixed_quantum`: packets in a row on one path; 0 = as the load suggests.
  PumpTransmit(PumpState& state, std::uint32_t fixed_quantum)
      : state_(state), fixed_quantum_(fixed_quantum) {}

  // At most about 64 packets; `more_work` says that there may be others.
  void run();

 private:
  bool next_run(unsigned most, core::TxPacket& tx);
  void send(const core::TxPacket& tx);
  void send_one_by_one(core::TxPacket tx);
  void send_for_endpoint(const core::TxPacket& tx);
  void choose_quantum();

  PumpState& state_;
  std::uint32_t fixed_quantum_;
  unsigned quantum_ = 1;
  MappedMemory sources_;                 // of packets being sent in this round
  std::array<core::TxPacket, 8> first_;  // of this round
};

}  // namespace mrc::nic
