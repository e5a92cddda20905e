// How many turns each port of an endpoint has had: whose turn it is in a profile that is listed in
// order (EvOrder::kAsListed). All queue pairs count together, so that the port as a whole goes
// round the list, whichever of them has data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace mrc::core {

class PortTurns {
 public:
  std::uint32_t turn(PortId port) const { return turns_[index(port)]; }
  void move_on(PortId port) { ++turns_[index(port)]; }

 private:
  static std::size_t index(PortId port) { return static_cast<std::size_t>(port) - 1; }

  std::array<std::uint32_t, kMaxPorts> turns_{};
};

}  // namespace mrc::core
