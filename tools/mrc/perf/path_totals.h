// How the paths of queue pairs do, of all of them together.
#pragma once

#include <cstdint>
#include <span>

#include "mrc.h"

namespace mrc::tool::perf {

struct PathTotals {
  std::uint64_t good = 0;  // paths by state, of all queue pairs together
  std::uint64_t skipped = 0;
  std::uint64_t bad = 0;
  std::uint64_t denied = 0;
  std::uint64_t packets_sent = 0;
  std::uint64_t retransmitted = 0;
};

PathTotals path_totals(std::span<mrc_qp* const> qps);

}  // namespace mrc::tool::perf
