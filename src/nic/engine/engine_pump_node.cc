// What a controller's wishes and the links do to ports and to running queue pairs.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "nic/engine/engine_pump.h"
#include "nic/queue_pair.h"
#include "os/clock.h"
#include "wire/srv6.h"

namespace mrc::nic {
namespace {

// The marks of the profile, which are for all queue pairs that use it.
void mark_paths(PathProfile& paths, const node::NodeEvProfile& wished) {
  for (std::size_t i = 0; i < paths.evs.size(); ++i) {
    const node::ProfileEv& ev = paths.evs[i];
    const auto same = [&](const node::ProfileEv& other) {
      return other.value == ev.value && other.port == ev.port;
    };
    const auto at = i < wished.evs.size() && same(wished.evs[i])
                        ? wished.evs.begin() + static_cast<std::ptrdiff_t>(i)
                        : std::find_if(wished.evs.begin(), wished.evs.end(), same);
    if (at != wished.evs.end()) paths.profile.set_denied(static_cast<EvIndex>(i), at->denied);
  }
}

// The switches that packets of a path visit, as far as the device knows them: of a way that the
// network chooses it knows none.
struct Way {
  std::array<wire::Usid, 2 * wire::kMaxUsids> hops{};
  unsigned count = 0;

  void add(const wire::IpAddress& carrier) {
    for (unsigned i = 0; i < wire::usid_count(carrier); ++i)
      hops[count++] = wire::usid_at(carrier, i);
  }
};

Way way_of(const Backend& backend, const QueuePairImpl& qp, EvIndex ev) {
  const core::EvEntry& entry = qp.e.paths->profile.entry(ev);
  Way way;
  if (const wire::EvValue* const srv6 = qp.e.paths->srv6_of(ev)) {
    way.add(wire::ev_carrier(*srv6));
    way.add(wire::ev_segment(*srv6));
  } else if (const auto carrier = backend.carrier_of(entry.port, qp.e.remote.gid, entry.entropy)) {
    way.add(*carrier);
  }
  return way;
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

bool EnginePump::is_excluded(const QueuePairImpl& qp, EvIndex ev) const {
  if (exclusions_.empty() || !qp.e.connected) return false;
  const Way way = way_of(*state_.backend, qp, ev);
  const PortId port = qp.e.paths->profile.entry(ev).port;
  return std::any_of(exclusions_.begin(), exclusions_.end(), [&](const node::PathExclusion& each) {
    return node::excludes(each, port, std::span(way.hops).first(way.count));
  });
}

bool EnginePump::settle_paths(QueuePairImpl& qp) {
  bool any_left = false;
  bool any_excluded = false;
  state_.now = os::monotonic_now();
  const core::EvProfile& profile = qp.e.paths->profile;
  for (unsigned i = 0; i < profile.size(); ++i) {
    const auto ev = static_cast<EvIndex>(i);
    const bool excluded = is_excluded(qp, ev);
    const bool denied = profile.entry(ev).denied || excluded;
    any_left = any_left || !denied;
    any_excluded = any_excluded || excluded;
    const Result<core::EvState> now = state_.endpoint->query_ev(qp.number(), ev);
    if (!now.ok() || (now.value() == core::EvState::kDenied) == denied) continue;
    [[maybe_unused]] const Status set =
        state_.endpoint->set_ev_denied(state_.now, qp.number(), ev, denied);
  }
  return any_left || !any_excluded;
}

// Queue pairs in use follow their profiles: paths denied, allowed again or replaced, congestion
// settings. What is to be told of the paths of before is told first.
unsigned EnginePump::apply_node_state(const node::NodeSnapshot& snapshot) {
  state_.now = os::monotonic_now();
  ports_enabled_ = snapshot.ports_enabled;
  exclusions_.clear();
  for (const auto& [name, part] : snapshot.drained)
    exclusions_.insert(exclusions_.end(), part.exclusions.begin(), part.exclusions.end());
  state_.gate.set(ports_enabled_, state_.now);
  apply_ports();
  results_.drain_events();
  // One profile for all that follow it, also where the first of them cannot.
  std::vector<std::shared_ptr<PathProfile>> made;
  unsigned stranded = 0;
  state_.qps.for_each([&](QueuePairImpl& qp) {
    if (!qp.e.paths) return;
    follow_profiles(*this, state_.now, qp, snapshot, made);
    const auto found = snapshot.ev_profiles.find(qp.e.paths->node_id);
    if (qp.e.paths->from_node && found != snapshot.ev_profiles.end())
      mark_paths(*qp.e.paths, found->second);
    if (!settle_paths(qp) && qp.state() != core::QpState::kError) ++stranded;
  });
  made.clear();
  path_profiles().give_back_unused();
  state_.more_work = true;
  return stranded;
}

}  // namespace mrc::nic
