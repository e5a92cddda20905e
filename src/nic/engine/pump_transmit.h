// Packets out: from what the protocol wants to send to the back end. Under the engine lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/tx_packet.h"
#include "nic/engine/pump_state.h"
#include "nic/mapped_memory.h"

namespace mrc::nic {

class PumpTransmit {
 public:
  // The last packet of a turn asks for an answer. With turns of one burst sixteen queue pairs, 64
  // KiB messages, had 1.85 answers to a burst and one alone 1.42; two bursts carry a sixth more
  // there, and a twentieth more with one. A third or fourth gains next to nothing.
  static constexpr unsigned kMostBurstsInARow = 2;

  // `fixed_quantum`: packets in a row on one path; 0 = as the load suggests.
  PumpTransmit(PumpState& state, std::uint32_t fixed_quantum)
      : state_(state), fixed_quantum_(fixed_quantum) {}

  // At most 64 packets of data, and as many others; `more_work` says that there may be more.
  void run();

 private:
  static constexpr unsigned kSendBudget = 64;
  static constexpr std::size_t kGathered = 8;

  struct Round {
    unsigned sent = 0;
    unsigned data_left;
    unsigned others_left = kSendBudget;  // answers and questions

    bool is_over() const { return data_left == 0 || others_left == 0; }
  };

  bool next_run(Round& round, core::TxPacket& tx);
  void send(const core::TxPacket& tx);
  std::span<const core::TxPacket> gather(Round& round);
  void send_answers(std::span<const core::TxPacket> packets);
  void send_one_by_one(core::TxPacket tx);
  void send_for_endpoint(const core::TxPacket& tx);
  unsigned suitable_quantum() const;
  void choose_quantum();

  PumpState& state_;
  std::uint32_t fixed_quantum_;
  unsigned quantum_ = 1;
  MappedMemory sources_;  // of packets being sent in this round
  std::array<core::TxPacket, kGathered> gathered_;
};

}  // namespace mrc::nic
