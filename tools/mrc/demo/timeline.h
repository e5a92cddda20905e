// The run as a list of moments, in order, each with what is worth telling about it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/types.h"
#include "demo/report.h"

namespace mrc::demo {

enum class MomentKind : std::uint8_t { kCut, kRepair, kMissed };

struct Moment {
  TimeNs at = 0;
  MomentKind kind = MomentKind::kCut;
  std::string what;
  std::vector<std::string> details;
};

std::vector<Moment> tell_timeline(const Report& report);

}  // namespace mrc::demo
