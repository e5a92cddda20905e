// What the kernel has to do to the interfaces of a cable so that the cable is what faults made of
// it. Values only; KernelTestbed gives the orders.
#pragma once

#include "fabric/link_condition.h"

namespace mrc::lab {

// One direction.
struct DirectionOrder {
  double filtered = 0;  // share of the frames that a filter drops
  double rate_share = 1;
  friend bool operator==(const DirectionOrder&, const DirectionOrder&) = default;
};

// An interface that is taken down cuts both directions, so that is done when both are down. When
// only one is, its filter drops everything: {.down = false, .home = {.filtered = 1}, .back = {}}.
struct CableOrder {
  bool down = false;
  DirectionOrder home;  // the direction that leaves its home end
  DirectionOrder back;
  friend bool operator==(const CableOrder&, const CableOrder&) = default;
};

CableOrder order_for(const fabric::LinkCondition& home, const fabric::LinkCondition& back);

}  // namespace mrc::lab
