// What a controller's wishes and the links do to ports and to running queue pairs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "nic/engine/engine_pump.h"
#include "nic/queue_pair.h"
#include "os/clock.h"

namespace mrc::nic {
namespace {

void deny_paths(PumpState& state, QueuePairImpl& qp, const node::NodeEvProfile& wished) {
  PathProfile& paths = *qp.e.paths;
  for (std::size_t i = 0; i < paths.evs.size(); ++i) {
    const node::ProfileEv& ev = paths.evs[i];
    const auto same = [&](const node::ProfileEv& other) {
      return other.value == ev.value && other.port == ev.port;
    };
    const auto at = i < wished.evs.size() && same(wished.evs[i])
                        ? wished.evs.begin() + static_cast<std::ptrdiff_t>(i)
                        : std::find_if(wished.evs.begin(), wished.evs.end(), same);
    if (at == wished.evs.end()) continue;
    const auto index = static_cast<EvIndex>(i);
    // The mark in the profile is for queue pairs to come, the call for this one.
    paths.profile.set_denied(index, at->denied);
    const Result<core::EvState> now = state.endpoint->query_ev(qp.number(), index);
    if (!now.ok() || (now.value() == core::EvState::kDenied) == at->denied) continue;
    [[maybe_unused]] const Status set =
        state.endpoint->set_ev_denied(state.now, qp.number(), index, at->denied);
  }
}

// Paths and congestion settings that were changed while the profiles are online. Where they are
// more or fewer than before (some can be used now, or no more), the queue pair keeps what it has.
void follow_profiles(EnginePump& pump, TimeNs at, QueuePairImpl& qp,
                     const node::NodeSnapshot& snapshot,
                     std::vector<std::shared_ptr<PathProfile>>& made) {
  if (qp.state() == core::QpState::kReset || qp.state() == core::QpState::kError) return;
  std::shared_ptr<PathProfile> paths = qp.e.paths;
  if (paths->from_node) {
    const PathProfileResult now = pump.path_profiles().of_node(snapshot, paths->node_id);
    made.push_back(now.profile);
    if (now.error == 0 && now.profile->profile.size() == paths->profile.size()) {
      paths = now.profile;
    }
  }
  core::CcProfile cc = qp.e.cc;
  if (const std::optional<std::uint64_t> id = qp.e.use.cc()) {
    const auto found = snapshot.cc_profiles.find(*id);
    if (found != snapshot.cc_profiles.end()) cc = pump.cc_of(found->second);
  }
  if (paths == qp.e.paths && cc == qp.e.cc) return;
  if (!pump.endpoint().follow_profiles(at, qp.number(), paths->profile, cc).ok()) return;
  qp.e.paths = std::move(paths);
  qp.e.cc = cc;
}

}  // namespace

void EnginePump::apply_ports() {
  const PortMask link = state_.backend->link_up();
  for (unsigned number = 1; number <= state_.backend->port_count(); ++number) {
    const auto port = static_cast<PortId>(number);
    const bool up = link.contains(port) && ports_enabled_.contains(port);
    [[maybe_unused]] const Status set = state_.endpoint->set_port_up(state_.now, port, up);
  }
}

// Queue pairs in use follow their profiles: paths denied, allowed again or replaced, congestion
// settings. What is to be told of the paths of before is told first.
void EnginePump::apply_node_state(const node::NodeSnapshot& snapshot) {
  state_.now = os::monotonic_now();
  ports_enabled_ = snapshot.ports_enabled;
  state_.gate.set(ports_enabled_, state_.now);
  apply_ports();
  results_.drain_events();
  // One profile for all that follow it, also where the first of them cannot.
  std::vector<std::shared_ptr<PathProfile>> made;
  state_.qps.for_each([&](QueuePairImpl& qp) {
    if (!qp.e.paths) return;
    follow_profiles(*this, state_.now, qp, snapshot, made);
    if (!qp.e.paths->from_node) return;
    const auto found = snapshot.ev_profiles.find(qp.e.paths->node_id);
    if (found != snapshot.ev_profiles.end()) deny_paths(state_, qp, found->second);
  });
  made.clear();
  path_profiles().give_back_unused();
  state_.more_work = true;
}

}  // namespace mrc::nic
