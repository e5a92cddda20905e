// Fabrics small enough to look at every path and odd enough to catch a wrong division.
#pragma once

#include <vector>

#include "fabric/topology.h"

namespace mrc::fabric {

inline std::vector<TopologySpec> sample_fabrics() {
  return {
      {.planes = 1, .hosts = 1, .t0 = 1, .t1 = 1},
      {.planes = 1, .hosts = 6, .t0 = 1, .t1 = 3},
      {.planes = 1, .hosts = 16, .t0 = 4, .t1 = 4},
      {.planes = 3, .hosts = 15, .t0 = 5, .t1 = 7},
      {.planes = 16, .hosts = 4, .t0 = 2, .t1 = 1},
      {.planes = 2, .hosts = 6, .t0 = 3, .t1 = 2, .cables = 3},
      {.planes = 1, .hosts = 4, .t0 = 4, .t1 = 3, .cables = 4},
      {.planes = 1, .hosts = 16, .t0 = 8, .t1 = 4, .pods = 4, .t2 = 1},
      {.planes = 1, .hosts = 24, .t0 = 6, .t1 = 6, .pods = 2, .t2 = 9},
      {.planes = 2, .hosts = 30, .t0 = 15, .t1 = 10, .pods = 5, .t2 = 6},
      {.planes = 1, .hosts = 8, .t0 = 2, .t1 = 2, .pods = 1, .t2 = 4},
  };
}

inline TopologySpec two_tier() { return {.planes = 2, .hosts = 16, .t0 = 4, .t1 = 4}; }
inline TopologySpec three_tier() {
  return {.planes = 1, .hosts = 24, .t0 = 6, .t1 = 6, .pods = 2, .t2 = 9};
}

}  // namespace mrc::fabric
