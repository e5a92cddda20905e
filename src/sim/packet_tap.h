// Looks at packets on links, for captures.
#pragma once

#include "fabric/topology.h"
#include "sim/packet.h"

namespace mrc::sim {

class PacketTap {
 public:
  virtual ~PacketTap() = default;
  // A packet begins to leave the sending end of a link. Times of one link grow; those of different
  // links may be out of order by the time a packet takes for a link.
  virtual void on_packet(Time now, fabric::LinkId link, const PacketHead& head,
                         const PacketBody& body) = 0;
};

}  // namespace mrc::sim
