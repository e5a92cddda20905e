// What befalls single packets between the port that sends them and the network.
#pragma once

#include <cstdint>
#include <vector>

#include "dst/flight.h"
#include "dst/model.h"
#include "dst/network.h"
#include "dst/random.h"
#include "dst/stage.h"

namespace mrc::dst {

class PacketFaults {
 public:
  PacketFaults(Stage& stage, Network& network, const Model& model);

  // Takes over a genuine packet: it is sent once, several times, altered, late, or not at all.
  void launch(std::uint32_t slot);
  // Sends a packet of the world's own making as it is.
  void launch_forged(Flight flight);

 private:
  bool strikes(Fault fault);
  bool lost(const Flight& flight);
  bool lost_by_kind(const Flight& flight);
  DurationNs reorder_delay();
  void alter(Flight& flight);
  void flip(Flight& flight, Fault kind);
  void flip_bytes(Flight& flight, Fault kind);
  void resize(Flight& flight);
  void duplicate(const Flight& original);
  void add_mutant(const Flight& original);
  void mutate(Flight& flight);
  void replay();
  void remember(const Flight& flight);
  void send_copy(const Flight& flight, DurationNs delay_ns);
  bool message_done(const Flight& flight) const;

  Stage& stage_;
  Network& network_;
  const Model& model_;
  Random random_;
  std::vector<Flight> archive_;  // of packets sent earlier, for replays
  std::uint32_t burst_left_ = 0;
  std::uint64_t sent_ = 0;
};

}  // namespace mrc::dst
