// What the tests of PathSet share: profiles, a recorder of events and short names.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "base/types.h"
#include "core/ev_profile.h"
#include "core/event.h"
#include "core/path_set.h"

namespace mrc::core {

constexpr PortMask kAllPorts = PortMask::first(kMaxPorts);

constexpr EvIndex ev_at(unsigned index) { return EvIndex{static_cast<std::uint16_t>(index)}; }
constexpr PortId port_at(unsigned number) { return PortId{static_cast<std::uint8_t>(number)}; }
constexpr unsigned index_of(EvIndex ev) { return static_cast<unsigned>(ev); }

// EV i is on port 1 + i % planes.
inline EvProfile striped_profile(unsigned planes, unsigned evs_per_plane,
                                 EvOrder order = EvOrder::kDrawn) {
  std::vector<EvEntry> entries;
  for (unsigned i = 0; i < planes * evs_per_plane; ++i) {
    entries.push_back({.entropy = 0x1000 + i, .port = port_at(1 + i % planes)});
  }
  return EvProfile::create(entries, 0xFFFF'FFFF, order).value();
}

struct PathEvent {
  enum class Kind : std::uint8_t { kState, kFloor, kPlane };
  Kind kind{};
  EvIndex ev = kNoEv;
  EvState state = EvState::kGood;
  std::uint32_t drops = 0;
  PortId port = kNoPort;
  bool usable = false;
  friend bool operator==(const PathEvent&, const PathEvent&) = default;

  static PathEvent state_of(EvIndex ev, EvState state, std::uint32_t drops = 0) {
    return {.kind = Kind::kState, .ev = ev, .state = state, .drops = drops};
  }
  static PathEvent floor(EvIndex ev) { return {.kind = Kind::kFloor, .ev = ev}; }
  static PathEvent plane(PortId port, bool usable) {
    return {.kind = Kind::kPlane, .port = port, .usable = usable};
  }
};
using PathEvents = std::vector<PathEvent>;

class PathRecorder : public PathObserver {
 public:
  void on_ev_state(EvIndex ev, EvState state, std::uint32_t drops) override {
    events_.push_back(PathEvent::state_of(ev, state, drops));
  }
  void on_ev_floor(EvIndex ev) override { events_.push_back(PathEvent::floor(ev)); }
  void on_plane_usable(PortId port, bool usable) override {
    events_.push_back(PathEvent::plane(port, usable));
  }
  PathEvents take() { return std::exchange(events_, {}); }

 private:
  PathEvents events_;
};

// A path set with all it needs.
struct Paths {
  explicit Paths(EvProfile p, const PathSetConfig& config = {}, std::uint64_t seed = 1)
      : profile(std::move(p)), set(profile, config, seed, recorder) {}
  Paths(unsigned planes, unsigned evs_per_plane, const PathSetConfig& config = {},
        std::uint64_t seed = 1)
      : Paths(striped_profile(planes, evs_per_plane), config, seed) {}

  // Four paths have been left for a loss each; on each of the others so much has arrived since that
  // one loss more is excused.
  void lose_here_and_there() {
    for (unsigned i = 0; i < 4; ++i)
      set.on_lost(ev_at(i), 0);
    for (unsigned i = 4; i < set.size(); ++i) {
      for (unsigned packet = 0; packet < 64; ++packet)
        set.on_delivered(ev_at(i));
    }
    recorder.take();
  }

  EvIndex choose() { return set.choose(kAllPorts, kNoEv); }
  EvIndex choose_on(unsigned port) { return set.choose(PortMask::of(port_at(port)), kNoEv); }
  std::vector<unsigned> choose_many(unsigned count) {
    std::vector<unsigned> chosen;
    for (unsigned i = 0; i < count; ++i)
      chosen.push_back(index_of(choose()));
    return chosen;
  }
  // Sends one probe and answers it.
  void probe_and_answer(EvIndex ev, TimeNs now, bool marked = false) {
    set.on_probe_sent(ev, now);
    set.on_probe_answered(ev, marked, now + 1);
  }
  void expect_states(const std::vector<EvState>& expected) const {
    for (unsigned i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(set.state(ev_at(i)), expected[i]) << "EV " << i;
    }
  }

  EvProfile profile;
  PathRecorder recorder;
  PathSet set;
};

}  // namespace mrc::core
