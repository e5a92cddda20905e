// The paths of queue pairs: from what a controller set, or from the device's own choice, to the
// profile the protocol engine works with.
//
// Not thread safe: belongs to whoever holds the engine lock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/ev_profile.h"
#include "nic/io/backend.h"
#include "node/node_state.h"
#include "os/kernel_random.h"

namespace mrc::nic {

// Shared by all queue pairs that were set up with the same paths.
struct PathProfile {
  core::EvProfile profile;
  bool from_node = false;  // otherwise the device's own, and the rest is empty
  std::uint64_t node_id = 0;
  std::uint32_t min_active = 0;
  bool srv6 = false;
  std::vector<node::ProfileEv> evs;       // by EvIndex, as the node's state has them
  std::vector<node::ProfileEv> unusable;  // on ports that we have not, or without a socket

  // The path at this position if it is that of `ev`.
  const core::EvEntry* entry_at(std::size_t position, const node::ProfileEv& ev) const {
    const bool same =
        position < evs.size() && evs[position].value == ev.value && evs[position].port == ev.port;
    return same ? &profile.entry(EvIndex{static_cast<std::uint16_t>(position)}) : nullptr;
  }
  const wire::EvValue* srv6_of(EvIndex ev) const {
    const auto index = static_cast<std::size_t>(ev);
    return srv6 && index < evs.size() ? &evs[index].value : nullptr;
  }
};

struct PathProfileResult {
  std::shared_ptr<PathProfile> profile;
  int error = 0;
};

class PathProfiles {
 public:
  struct Counts {
    std::uint32_t evs_per_port = 8;         // of the device's own choice
    std::uint32_t active_evs_per_port = 0;  // 0 = all
  };
  PathProfiles(Backend& backend, const Counts& counts, os::KernelRandom& random,
               const wire::Dialect& dialect = wire::kOpenMrc)
      : backend_(&backend), counts_(counts), random_(&random), dialect_(dialect) {}

  // Of all planes together; the other EVs are backups. 0 = all.
  std::uint16_t active_evs() const;
  // For queue pairs without a profile. EIO when the back end can use no path at all.
  PathProfileResult own();
  // ENOENT: no such profile. EINVAL: not online, or without a path on our ports.
  PathProfileResult of_node(const node::NodeSnapshot& snapshot, std::uint64_t id);
  // Whatever the back end holds for paths of profiles that nobody has any more.
  void give_back_unused();

 private:
  // A usable entropy no entry has yet, 0 when none was found.
  bool choose_path(std::vector<core::EvEntry>& entries, PortId port, std::uint32_t wish,
                   bool exactly);
  static bool same_paths(const PathProfile& built, const node::NodeEvProfile& now);

  Backend* backend_;
  Counts counts_;
  os::KernelRandom* random_;
  wire::Dialect dialect_;
  std::shared_ptr<PathProfile> own_;
  struct Built {
    std::weak_ptr<PathProfile> profile;
    std::vector<node::ProfileEv> source;
  };
  std::map<std::uint64_t, Built> built_;
  std::vector<std::weak_ptr<PathProfile>> made_;  // also those that were replaced and are in use
};

// The entropy an EV of that kind puts into packets; SRv6 EVs leave it to the sender. Of an EV of 16
// bits, which is the source port, there are no halves to order.
std::uint32_t entropy_of(wire::EvKind kind, const wire::EvValue& value,
                         const wire::Dialect& dialect);
constexpr bool is_srv6(wire::EvKind kind) {
  return kind == wire::EvKind::kSrv6 || kind == wire::EvKind::kSrv6Segment;
}

}  // namespace mrc::nic
