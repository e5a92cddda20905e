// PathSet against a slow and obvious model of it, under random use.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "core/path_set.h"
#include "unit/core/path_set_fixture.h"

namespace mrc::core {
namespace {

using enum EvState;

constexpr DurationNs kBase = 1000;
constexpr DurationNs kCap = 9000;
constexpr std::uint64_t kMaxCatchUp = 8;

struct ModelEv {
  unsigned port = 0;
  EvState state = kGood;
  EvCounters counters;
  std::uint32_t drops = 0;
  unsigned losses = 0;
  bool blamed = false;
  bool on_trial = false;  // brought back by probes, nothing delivered since
  bool probe_open = false;
  bool answered_once = false;
  unsigned credit = 0;  // for losses, in 8192ths
  bool lost_last = false;
  DurationNs period = 0;
  TimeNs due = 0;

  bool usable() const { return state == kGood || state == kSkip; }
};

// Lists and full scans only. It knows states, events and the probe schedule exactly; of the
// rotation it knows only what every order must satisfy.
class Model {
 public:
  Model(const EvProfile& profile, unsigned min_active)
      : min_active_(min_active), usable_ports_(profile.ports()) {
    for (unsigned i = 0; i < profile.size(); ++i) {
      evs_.push_back({.port = static_cast<unsigned>(profile.port(ev_at(i)))});
      if (profile.entry(ev_at(i)).denied) evs_[i].state = kDenied;
    }
    in_use_before_ = planes_in_use();
  }

  std::vector<ModelEv>& evs() { return evs_; }
  PathEvents take_events() { return std::exchange(events_, {}); }

  unsigned count(EvState a, EvState b) const {
    return static_cast<unsigned>(std::count_if(evs_.begin(), evs_.end(), [a, b](const ModelEv& ev) {
      return ev.state == a || ev.state == b;
    }));
  }
  bool at_floor() const { return count(kGood, kSkip) <= min_active_; }
  PortMask planes_in_use() const {
    PortMask ports;
    for (const ModelEv& ev : evs_) {
      if (ev.usable()) ports = ports.with(port_at(ev.port));
    }
    return ports & usable_ports_;
  }

  void mark(unsigned i) {
    ++evs_[i].counters.marked;
    if (evs_[i].state == kGood) evs_[i].state = kSkip;
  }
  void deliver(unsigned i) {
    silent_ = 0;
    evs_[i].on_trial = false;
    confirm(i);
    if (!evs_[i].usable()) return;
    count_towards_the_mean(0);
    evs_[i].lost_last = false;
    evs_[i].credit += 2 * 8192 * recently_lost_ / std::max(recently_, 256U);
    evs_[i].credit = std::min(evs_[i].credit, 2 * 8192U);
  }
  void lose(unsigned i, TimeNs now) {
    ++silent_;
    ++evs_[i].counters.lost;
    ++evs_[i].drops;
    if (evs_[i].usable() && excuses(i)) return;
    if (evs_[i].usable()) go_bad(i, now);
    if (evs_[i].state == kAssumedBad) ++evs_[i].losses;
  }
  void always_skip(unsigned i, TimeNs now) {
    if (evs_[i].usable()) go_bad(i, now);
    if (evs_[i].state != kAssumedBad) return;
    evs_[i].blamed = true;
    evs_[i].answered_once = false;
  }
  void spurious(unsigned i) {
    ModelEv& ev = evs_[i];
    if (ev.state != kAssumedBad || ev.losses == 0) return;
    if (--ev.losses == 0 && !ev.blamed) come_back(i, kGood);
    end_operation();
  }
  void probe_sent(unsigned i, TimeNs now) {
    ModelEv& ev = evs_[i];
    if (ev.state != kAssumedBad) return;
    if (ev.probe_open) {
      ev.answered_once = false;
      ev.blamed = true;
    }
    ev.probe_open = true;
    ++silent_;
    ev.period = std::min(2 * ev.period, kCap);
    ev.due = now + ev.period;
    next_probe_allowed_ = now + kBase / 4;
  }
  void probe_answered(unsigned i, bool marked, TimeNs now) {
    ModelEv& ev = evs_[i];
    const bool one_is_enough = in_doubt() || at_floor();
    silent_ = 0;
    if (marked) mark(i);
    confirm(i);
    if (ev.state != kAssumedBad || !ev.probe_open) return;
    ev.probe_open = false;
    if (ev.answered_once || one_is_enough) {
      come_back(i, marked ? kSkip : kGood);
      ev.on_trial = true;
      confirm(i);
    } else {
      ev.answered_once = true;
      ev.due = std::min(ev.due, now + kBase);
    }
    end_operation();
  }
  // Which plane gets a path back when all are gone is free; `seen` tells the choice.
  void deny(unsigned i, bool denied, const PathEvents& seen) {
    ModelEv& ev = evs_[i];
    if (denied == (ev.state == kDenied)) return;
    std::erase(bad_, i);
    ev.state = denied ? kDenied : kGood;
    report(i);
    if (denied) keep_one(seen);
    end_operation();
  }
  void set_usable_ports(PortMask ports, TimeNs last_now, const PathEvents& seen) {
    for (const unsigned i : bad_) {
      const PortId port = port_at(evs_[i].port);
      if (!ports.contains(port) || usable_ports_.contains(port)) continue;
      evs_[i].due = last_now;
      evs_[i].period = kBase;
      evs_[i].probe_open = evs_[i].answered_once = false;
    }
    usable_ports_ = ports;
    keep_one(seen);
    end_operation();
  }

  TimeNs next_probe_time() const {
    TimeNs earliest = kNever;
    for (const unsigned i : bad_) {
      if (usable_ports_.contains(port_at(evs_[i].port))) earliest = std::min(earliest, evs_[i].due);
    }
    return earliest == kNever ? kNever : std::max(earliest, next_probe_allowed_);
  }
  // The due time of the probe to send now, kNever when there is none.
  TimeNs due_probe(TimeNs now, PortMask free_ports) const {
    TimeNs earliest = kNever;
    for (const unsigned i : bad_) {
      const PortMask ports = usable_ports_ & free_ports;
      if (ports.contains(port_at(evs_[i].port))) earliest = std::min(earliest, evs_[i].due);
    }
    return earliest <= now && now >= next_probe_allowed_ ? earliest : kNever;
  }

  std::uint64_t load(unsigned port) const {
    const std::uint64_t least = max_load_ - std::min(max_load_, kMaxCatchUp);
    return std::max(loads_[port], least);
  }
  void count_packet(unsigned port) {
    loads_[port] = load(port) + 1;
    max_load_ = std::max(max_load_, loads_[port]);
  }

 private:
  void count_towards_the_mean(unsigned lost) {
    ++recently_;
    recently_lost_ += lost;
    if (recently_ < 1024) return;
    recently_ /= 2;
    recently_lost_ /= 2;
  }
  bool excuses(unsigned i) {
    count_towards_the_mean(1);
    const bool again = std::exchange(evs_[i].lost_last, true);
    if (again || evs_[i].credit < 8192) return false;
    evs_[i].credit -= 8192;
    return true;
  }
  void go_bad(unsigned i, TimeNs now) {
    ModelEv& ev = evs_[i];
    const bool last = planes_in_use() == PortMask::of(port_at(ev.port)) &&
                      std::count_if(evs_.begin(), evs_.end(), [&ev](const ModelEv& other) {
                        return other.usable() && other.port == ev.port;
                      }) == 1;
    const bool at_floor = this->at_floor() || last;
    const auto oldest = std::find_if(bad_.begin(), bad_.end(), [this, &ev](unsigned other) {
      return evs_[other].port == ev.port;
    });
    const bool better_known = oldest != bad_.end() && confirmed_ == i && !in_doubt() &&
                              (evs_[*oldest].blamed || evs_[*oldest].probe_open);
    if (at_floor && (oldest == bad_.end() || better_known)) {
      const bool another = confirmed_ && *confirmed_ != i && evs_[*confirmed_].usable();
      ev.state = another ? kSkip : kGood;
      events_.push_back(PathEvent::floor(ev_at(i)));
      return;
    }
    const unsigned exchanged = at_floor ? *oldest : i;
    const DurationNs period = ev.on_trial && !in_doubt() ? ev.period : kBase;
    ev = {.port = ev.port, .state = kAssumedBad, .counters = ev.counters, .drops = ev.drops};
    ev.period = period;
    ev.due = now + period;
    bad_.push_back(i);
    report(i);
    if (at_floor) {
      come_back(exchanged, kSkip);
      events_.push_back(PathEvent::floor(ev_at(exchanged)));
    }
    end_operation();
  }
  void come_back(unsigned i, EvState state) {
    std::erase(bad_, i);
    evs_[i].state = state;
    report(i);
  }
  bool in_doubt() const { return silent_ >= 32; }
  void confirm(unsigned i) {
    if (evs_[i].usable()) confirmed_ = i;
  }
  void keep_one(const PathEvents& seen) {
    const auto is_tried = [this](unsigned i) {
      return usable_ports_.contains(port_at(evs_[i].port));
    };
    if (!planes_in_use().empty() || std::none_of(bad_.begin(), bad_.end(), is_tried)) return;
    for (const PathEvent& event : seen) {
      if (event.kind != PathEvent::Kind::kFloor) continue;
      const unsigned i = index_of(event.ev);
      const auto oldest = std::find_if(bad_.begin(), bad_.end(), [this, i](unsigned other) {
        return evs_[other].port == evs_[i].port;
      });
      if (!is_tried(i) || oldest == bad_.end() || *oldest != i) return;
      come_back(i, kGood);
      events_.push_back(event);
      return;
    }
  }
  void report(unsigned i) {
    const EvState shown = evs_[i].state == kSkip ? kGood : evs_[i].state;
    events_.push_back(PathEvent::state_of(ev_at(i), shown, std::exchange(evs_[i].drops, 0)));
  }
  void end_operation() {
    const PortMask in_use = planes_in_use();
    for (unsigned port = 1; port <= kMaxPorts; ++port) {
      const bool usable = in_use.contains(port_at(port));
      if (usable == in_use_before_.contains(port_at(port))) continue;
      if (usable) loads_[port] = max_load_;
      events_.push_back(PathEvent::plane(port_at(port), usable));
    }
    in_use_before_ = in_use;
  }

  unsigned min_active_;
  unsigned recently_ = 0;  // packets on paths in use
  unsigned recently_lost_ = 0;
  std::vector<ModelEv> evs_;
  std::vector<unsigned> bad_;  // oldest first
  PortMask usable_ports_;
  PortMask in_use_before_;
  PathEvents events_;
  unsigned silent_ = 0;                // losses and probes since the last sign of life
  std::optional<unsigned> confirmed_;  // the EV of that sign
  TimeNs next_probe_allowed_ = -kSecondNs;
  std::vector<std::uint64_t> loads_ = std::vector<std::uint64_t>(kMaxPorts + 1);
  std::uint64_t max_load_ = 0;
};

EvProfile random_profile(Prng& prng) {
  const unsigned planes = 1 + prng.below(5);
  std::vector<EvEntry> entries;
  const unsigned count = planes + prng.below(40);
  for (unsigned i = 0; i < count; ++i) {
    const unsigned port = i < planes ? 1 + i * 3 : 1 + prng.below(planes) * 3;
    entries.push_back({.entropy = i, .port = port_at(port), .denied = prng.below(10) == 0});
  }
  const EvOrder order = prng.below(2) == 0 ? EvOrder::kDrawn : EvOrder::kAsListed;
  return EvProfile::create(entries, 0xFFFF'FFFF, order).value();
}

class Walk {
 public:
  explicit Walk(std::uint64_t seed)
      : prng_(seed),
        all_active_(seed % 3 != 0),
        paths_(random_profile(prng_), random_config(), seed),
        model_(paths_.profile, floor_of(paths_.profile.size())) {}

  void step() {
    now_ += prng_.below(4) == 0 ? prng_.below(3 * kBase) : prng_.below(kBase / 4);
    const unsigned i = prng_.below(paths_.set.size());
    const EvIndex ev = ev_at(i);
    PathSet& set = paths_.set;
    const std::uint32_t action = prng_.below(20);
    PathEvents seen;
    if (action < 9) return choose();
    if (action < 11) return probe();
    if (action == 11) {
      set.on_marked(ev);
      model_.mark(i);
    } else if (action == 12) {
      set.on_delivered(ev);
      model_.deliver(i);
    } else if (action < 16) {
      last_now_ = now_;
      set.on_lost(ev, now_);
      model_.lose(i, now_);
    } else if (action == 16) {
      last_now_ = now_;
      set.on_always_skip(ev, now_);
      model_.always_skip(i, now_);
    } else if (action == 17) {
      last_now_ = now_;
      set.on_spurious_loss(ev, now_);
      model_.spurious(i);
    } else if (action == 18) {
      last_now_ = now_;
      const bool denied = prng_.below(3) == 0;
      set.set_denied(ev, denied, now_);
      seen = paths_.recorder.take();
      model_.deny(i, denied, seen);
    } else if (prng_.below(4) == 0) {
      const PortMask ports = prng_.below(2) == 0 ? paths_.profile.ports() : random_ports();
      set.set_usable_ports(ports);
      seen = paths_.recorder.take();
      model_.set_usable_ports(ports & paths_.profile.ports(), last_now_, seen);
    }
    if (seen.empty()) seen = paths_.recorder.take();
    ASSERT_EQ(seen, model_.take_events());
  }

  void compare() {
    const PathSet& set = paths_.set;
    for (unsigned i = 0; i < set.size(); ++i) {
      const ModelEv& ev = model_.evs()[i];
      const EvCounters& counters = set.counters(ev_at(i));
      ASSERT_EQ(set.state(ev_at(i)), ev.state) << "EV " << i;
      ASSERT_EQ(counters.sent, ev.counters.sent);
      ASSERT_EQ(counters.lost, ev.counters.lost);
      ASSERT_EQ(counters.marked, ev.counters.marked);
    }
    ASSERT_EQ(set.good_count(), model_.count(kGood, kSkip));
    ASSERT_EQ(set.bad_count(), model_.count(kAssumedBad, kAssumedBad));
    ASSERT_EQ(set.planes_in_use(), model_.planes_in_use());
    ASSERT_EQ(set.next_probe_time(), model_.next_probe_time());
  }

 private:
  PathSetConfig random_config() {
    PathSetConfig config{.probe_base_ns = kBase, .probe_cap_ns = kCap, .turns = &turns_};
    min_active_ = config.min_active = static_cast<std::uint16_t>(prng_.below(12));
    if (!all_active_) config.active_evs = static_cast<std::uint16_t>(1 + prng_.below(20));
    return config;
  }
  unsigned floor_of(unsigned size) const {
    return std::clamp(min_active_ != 0 ? min_active_ : size / 4, 1U, size);
  }
  PortMask random_ports() { return PortMask(prng_.next32() & 0xFFFF); }

  void choose() {
    std::vector<ModelEv>& evs = model_.evs();
    const PortMask free_ports = prng_.below(2) == 0 ? kAllPorts : random_ports();
    const unsigned avoided = prng_.below(paths_.set.size() * 2);
    const EvIndex avoid = avoided < paths_.set.size() ? ev_at(avoided) : kNoEv;
    std::vector<unsigned> candidates;
    for (unsigned i = 0; i < evs.size(); ++i) {
      const PortMask ports = model_.planes_in_use() & free_ports;
      if (evs[i].usable() && ports.contains(port_at(evs[i].port))) candidates.push_back(i);
    }
    const bool at_floor = model_.at_floor();
    was_at_floor_ = was_at_floor_ || at_floor;
    const EvIndex chosen = paths_.set.choose(free_ports, avoid);
    ASSERT_EQ(chosen == kNoEv, candidates.empty());
    if (chosen == kNoEv) return;
    const unsigned c = index_of(chosen);
    ASSERT_EQ(std::count(candidates.begin(), candidates.end(), c), 1);
    ASSERT_TRUE(chosen != avoid || candidates.size() == 1);
    // At the floor planes with nothing good are passed over, which counts as their turn.
    if (all_active_ && !was_at_floor_) check_plane_choice(candidates, c, avoid);
    if (at_floor) check_passed_planes(candidates, c);
    check_skip_rule(candidates, c, avoid);
    evs[c].state = kGood;
    ++evs[c].counters.sent;
    model_.count_packet(evs[c].port);
  }

  // No plane with another EV than `avoid` has had less than the one chosen, of those that a packet
  // sent again prefers: others than that of `avoid` with a good EV.
  void check_plane_choice(const std::vector<unsigned>& candidates, unsigned chosen, EvIndex avoid) {
    const std::vector<ModelEv>& evs = model_.evs();
    const auto elsewhere = [&](unsigned i) {
      return avoid != kNoEv && evs[i].port != evs[index_of(avoid)].port && has_good(candidates, i);
    };
    const bool moves = std::any_of(candidates.begin(), candidates.end(), elsewhere);
    ASSERT_TRUE(!moves || elsewhere(chosen));
    for (const unsigned i : candidates) {
      if (ev_at(i) == avoid || (moves && !elsewhere(i))) continue;
      ASSERT_GE(model_.load(model_.evs()[i].port), model_.load(model_.evs()[chosen].port));
    }
  }

  bool has_good(const std::vector<unsigned>& candidates, unsigned plane_of) {
    const std::vector<ModelEv>& evs = model_.evs();
    return std::any_of(candidates.begin(), candidates.end(), [&](unsigned i) {
      return evs[i].port == evs[plane_of].port && evs[i].state == kGood;
    });
  }

  // At most one SKIP entry of the plane is revived; a SKIP entry is used only for want of a GOOD
  // one.
  void check_skip_rule(const std::vector<unsigned>& candidates, unsigned chosen, EvIndex avoid) {
    std::vector<ModelEv>& evs = model_.evs();
    unsigned revived = 0;
    unsigned good = 0;
    for (const unsigned i : candidates) {
      if (evs[i].port != evs[chosen].port) continue;
      if (evs[i].state == kGood && ev_at(i) != avoid) ++good;
      if (evs[i].state == kSkip && paths_.set.state(ev_at(i)) == kGood) {
        ++revived;
        evs[i].state = i == chosen ? kSkip : kGood;
      }
    }
    ASSERT_LE(revived, 1U);
    ASSERT_TRUE(!all_active_ || model_.at_floor() || evs[chosen].state == kGood || good == 0);
  }

  // Passing over a plane may be the last time that one of its EVs is to be passed over.
  void check_passed_planes(const std::vector<unsigned>& candidates, unsigned chosen) {
    std::set<unsigned> revived;
    for (const unsigned i : candidates) {
      ModelEv& ev = model_.evs()[i];
      if (ev.port == model_.evs()[chosen].port) continue;
      if (ev.state != kSkip || paths_.set.state(ev_at(i)) != kGood) continue;
      ASSERT_TRUE(revived.insert(ev.port).second);
      ev.state = kGood;
    }
  }

  void probe() {
    PathSet& set = paths_.set;
    const PortMask free_ports = prng_.below(2) == 0 ? kAllPorts : random_ports();
    const EvIndex due = set.due_probe(now_, free_ports);
    const TimeNs due_time = model_.due_probe(now_, free_ports);
    ASSERT_EQ(due == kNoEv, due_time == kNever);
    unsigned i = prng_.below(set.size());  // a probe or an answer nobody asked for
    if (due != kNoEv) {
      i = index_of(due);
      ASSERT_EQ(model_.evs()[i].due, due_time);
      ASSERT_TRUE(free_ports.contains(port_at(model_.evs()[i].port)));
    }
    if (due != kNoEv || prng_.below(4) == 0) {
      last_now_ = now_;
      set.on_probe_sent(ev_at(i), now_);
      model_.probe_sent(i, now_);
    }
    if (prng_.below(3) != 0) {
      const bool marked = prng_.below(4) == 0;
      last_now_ = now_;
      set.on_probe_answered(ev_at(i), marked, now_);
      model_.probe_answered(i, marked, now_);
    }
    ASSERT_EQ(paths_.recorder.take(), model_.take_events());
  }

  Prng prng_;
  bool all_active_;
  unsigned min_active_ = 0;
  bool was_at_floor_ = false;
  PortTurns turns_;
  Paths paths_;
  Model model_;
  TimeNs now_ = 0;
  TimeNs last_now_ = 0;
};

TEST(PathSetModel, AgreesUnderRandomUse) {
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    Walk walk(seed);
    for (unsigned step = 0; step < 1500; ++step) {
      walk.step();
      if (!testing::Test::HasFatalFailure()) walk.compare();
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace mrc::core
