// How long a flow takes that has the fabric to itself, found by running it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sim/config.h"

namespace mrc::sim {

// The run of one flow between the two hosts farthest apart on a fabric that is the same but for the
// hosts nobody uses. No faults, no loss.
SimConfig alone(const SimConfig& config, std::uint64_t bytes);

class IdealTimes {
 public:
  // Sizes that are really run; the time of others lies on the line between their neighbours.
  static constexpr std::size_t kMaxRuns = 12;
  // Larger flows are continued along the line through the two largest that are run.
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 28;

  IdealTimes(const SimConfig& config, std::vector<std::uint64_t> sizes);

  // From post to the sender's completion, of one part of a transfer that is split over the
  // connections of its pair.
  double us(std::uint64_t bytes) const;

 private:
  std::map<std::uint64_t, double> known_us_;
};

}  // namespace mrc::sim
