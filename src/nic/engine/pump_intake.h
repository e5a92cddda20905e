// Posted work in: from the rings of a queue pair to the protocol. Under the engine lock.
#pragma once

#include "nic/engine/pump_results.h"
#include "nic/engine/pump_state.h"

namespace mrc::nic {

class PumpIntake {
 public:
  PumpIntake(PumpState& state, PumpResults& results) : state_(state), results_(results) {}

  // All that was posted so far. Work for a queue pair that has failed is flushed, behind what was
  // flushed when it failed.
  void take(QueuePairImpl& qp);
  // Sends that end without a completion.
  void forget_sends(QueuePairImpl& qp);

 private:
  void take_receives(QueuePairImpl& qp);
  void take_sends(QueuePairImpl& qp);

  PumpState& state_;
  PumpResults& results_;
};

}  // namespace mrc::nic
