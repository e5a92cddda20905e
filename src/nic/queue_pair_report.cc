#include <cerrno>
#include <cstddef>
#include <new>

#include "nic/device_impl.h"
#include "nic/queue_pair.h"

namespace mrc::nic {

QpReport QueuePairImpl::report() {
  if (device_->in_child()) return {};
  try {
    const EngineGuard guard(*engine_);
    return build_report();
  } catch (const std::bad_alloc&) {
    return {};
  }
}

int QueuePairImpl::totals(QpTotals& totals) {
  if (device_->in_child()) return EIO;
  totals = {};
  const EngineGuard guard(*engine_);
  const core::Endpoint& endpoint = engine_->pump().endpoint();
  const Result<core::QpStatus> status = endpoint.query_qp(number_);
  if (status.ok()) totals.status = status.value();
  if (!e.paths) return 0;
  for (unsigned i = 0; i < e.paths->profile.size(); ++i) {
    const Result<core::EvState> state = endpoint.query_ev(number_, static_cast<EvIndex>(i));
    // Before RTR the engine has no opinion about a path: it is as good as any.
    ++totals.paths[static_cast<std::size_t>(state.ok() ? state.value() : core::EvState::kGood)];
  }
  return 0;
}

QpReport QueuePairImpl::build_report() {
  const core::Endpoint& endpoint = engine_->pump().endpoint();
  QpReport report;
  const Result<core::QpStatus> status = endpoint.query_qp(number_);
  if (status.ok()) report.status = status.value();
  report.peer = e.remote.gid;
  report.remote_qp = e.rtr.remote_qp;
  report.failure = e.failure;
  report.explanation = e.explanation;
  if (!e.paths) return report;
  report.unusable_evs = static_cast<unsigned>(e.paths->unusable.size());
  for (unsigned i = 0; i < e.paths->profile.size(); ++i) {
    const auto ev = static_cast<EvIndex>(i);
    const core::EvEntry& entry = e.paths->profile.entry(ev);
    PathReport path{.port = entry.port, .entropy = entry.entropy};
    const Result<core::EvState> state = endpoint.query_ev(number_, ev);
    if (state.ok()) path.state = state.value();
    const Result<core::EvCounters> counters = endpoint.query_ev_counters(number_, ev);
    if (counters.ok()) path.counters = counters.value();
    report.paths.push_back(path);
  }
  return report;
}

}  // namespace mrc::nic
