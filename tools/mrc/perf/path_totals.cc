#include "perf/path_totals.h"

#include "collective/device.h"
#include "openmrc_counters.h"

namespace mrc::tool::perf {

PathTotals path_totals(std::span<mrc_qp* const> qps) {
  PathTotals totals;
  for (mrc_qp* qp : qps) {
    openmrc_qp_counters counters{};
    counters.size = sizeof counters;
    collective::expect_ok("reading the counters of a queue pair",
                          openmrc_query_qp_counters(qp, &counters));
    totals.packets_sent += counters.packets_sent;
    totals.retransmitted += counters.retransmitted;
    totals.good += counters.paths_good;
    totals.skipped += counters.paths_skipped;
    totals.bad += counters.paths_assumed_bad;
    totals.denied += counters.paths_denied;
  }
  return totals;
}

}  // namespace mrc::tool::perf
