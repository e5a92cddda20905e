// Somebody who can send packets to the hosts but does not see theirs. What is forged here either
// comes from an address that is not the peer's, or names a queue pair that does not exist, or PSNs
// that are not in the window, or says nothing that a lying peer could profit from. A reader on the
// path could do more; plain mode does not claim to stop that.
#pragma once

#include <cstdint>
#include <optional>

#include "dst/connection.h"
#include "dst/flight.h"
#include "dst/random.h"
#include "dst/stage.h"

namespace mrc::dst {

struct World;

class Adversary {
 public:
  explicit Adversary(World& world);

  void start();
  void on_fault(Fault kind);

 private:
  void schedule_next(Fault kind);
  std::optional<EndRef> random_victim();
  Flight forge(EndRef victim, Fault kind);
  Flight to_victim(EndRef victim);
  // Writes into the victim's region.
  Flight forged_write(EndRef victim, Psn psn);
  Psn psn_outside_window(EndRef victim);
  Flight forged_sack(EndRef victim, std::int64_t cumulative);
  Flight unsent_ack(EndRef victim);
  Flight contradictory_sack(EndRef victim);
  Flight forged_probe(EndRef victim);
  Flight forged_port_status(EndRef victim);
  Address foreign_address();

  World& world_;
  Random random_;
};

}  // namespace mrc::dst
