// What `mrc demo` was asked for, and the times that follow from it.
#pragma once

#include <cstdint>
#include <string>

namespace mrc::tool::demo {

struct Options {
  unsigned hosts = 8;
  unsigned planes = 4;
  double mbps = 25;      // of a port
  double fault_s = 2;    // how long each fault lasts, and how long the network is well after it
  bool compares = true;  // with a single-path transport
  bool json = false;
  std::string training;  // the program

  static constexpr unsigned kT0 = 2;
  static constexpr unsigned kT1 = 4;
  static constexpr unsigned kFaults = 3;
  // Of training, at least. Beside the all-reduces two cores take nearly as long for one, and the
  // drill is not over before its training.
  static constexpr unsigned kStepMs = 400;

  double warm_up_s() const { return fault_s; }
  double drill_s() const { return warm_up_s() + kFaults * 2 * fault_s; }
  // The training lasts as long as the drill.
  std::uint64_t steps() const { return static_cast<std::uint64_t>(drill_s() * 1e3 / kStepMs) + 1; }
};

}  // namespace mrc::tool::demo
