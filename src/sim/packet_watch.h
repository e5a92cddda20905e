// Follows packets through the network, for explanations (explain.h). Looking changes nothing.
#pragma once

#include <cstdint>

#include "fabric/topology.h"
#include "sim/packet.h"

namespace mrc::sim {

enum class LossCause : std::uint8_t {
  kTrimmed,  // a switch cut the payload off
  kQueueFull,
  kLinkDown,
  kRandomLoss,
  kNoRoute
};

class PacketWatch {
 public:
  virtual ~PacketWatch() = default;
  // It waits at the sending end of a link, and leaves; who need not wait only leaves. Links are
  // brought up to date late, so `at` may lie in the past.
  virtual void on_queued(Time now, PacketId packet) = 0;
  virtual void on_started(Time at, fabric::LinkId link, PacketId packet) = 0;
  // It will not arrive; of a trimmed one the headers still do.
  virtual void on_lost(Time now, PacketId packet, LossCause cause) = 0;
  // Each is where the other was: `arrival` stands in the queue that `queued` stood in.
  virtual void on_exchanged(Time now, PacketId arrival, PacketId queued) = 0;
};

}  // namespace mrc::sim
