#include "perf/path_totals.h"

#include "api/handles.h"

namespace mrc::tool::perf {

PathTotals path_totals(std::span<mrc_qp* const> qps) {
  PathTotals totals;
  for (const mrc_qp* qp : qps) {
    const nic::QpReport report = qp->pair.nic().report();
    totals.packets_sent += report.status.counters.data_sent;
    totals.retransmitted += report.status.counters.retransmitted;
    for (const nic::PathReport& path : report.paths) {
      switch (path.state) {
        case core::EvState::kGood:
          ++totals.good;
          break;
        case core::EvState::kSkip:
          ++totals.skipped;
          break;
        case core::EvState::kAssumedBad:
          ++totals.bad;
          break;
        case core::EvState::kDenied:
          ++totals.denied;
          break;
      }
    }
  }
  return totals;
}

}  // namespace mrc::tool::perf
