// A path set on four ports that nobody watches.
#pragma once

#include <vector>

#include "core/ev_profile.h"
#include "core/path_set.h"

namespace mrc::bench {

class Paths {
 public:
  static constexpr unsigned kPorts = 4;

  explicit Paths(unsigned evs) : profile_(make_profile(evs)), set_(profile_, {}, 5, silent_) {}
  Paths(const Paths&) = delete;
  Paths& operator=(const Paths&) = delete;

  core::PathSet& set() { return set_; }
  static PortMask ports() { return PortMask::first(kPorts); }

 private:
  class Silent final : public core::PathObserver {
   public:
    void on_ev_state(EvIndex, core::EvState, std::uint32_t) override {}
    void on_ev_floor(EvIndex) override {}
    void on_plane_usable(PortId, bool) override {}
  };

  static core::EvProfile make_profile(unsigned evs) {
    std::vector<core::EvEntry> entries;
    for (unsigned i = 0; i < evs; ++i) {
      entries.push_back({0x4000 + i, static_cast<PortId>(i % kPorts + 1)});
    }
    return core::EvProfile::create(entries).value();
  }

  core::EvProfile profile_;
  Silent silent_;
  core::PathSet set_;
};

}  // namespace mrc::bench
