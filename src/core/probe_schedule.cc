#include "core/probe_schedule.h"

#include <algorithm>

#include "base/planted_bug.h"
#include "core/rtt.h"

namespace mrc::core {

ProbeSchedule::ProbeSchedule(const EvProfile& profile, DurationNs base_ns, DurationNs cap_ns)
    : profile_(&profile),
      due_(profile.size()),
      places_(profile.size()),
      heap_(profile.size()),
      planes_(profile.plane_count()),
      base_ns_(base_ns),
      cap_ns_(cap_ns) {
  for (unsigned i = 0; i < profile.size(); ++i) {
    const unsigned plane = profile.plane(EvIndex{static_cast<std::uint16_t>(i)});
    for (std::size_t behind = plane + 1U; behind < planes_.size(); ++behind)
      ++planes_[behind].begin;
  }
}

void ProbeSchedule::add(EvIndex ev, TimeNs now, bool again) {
  Plane& plane = planes_[profile_->plane(ev)];
  Place& place = places_[index(ev)];
  if (!again) place.level = 0;
  put(plane, plane.size++, static_cast<std::uint16_t>(ev));
  move_to(ev, now + period(place.level));
}

void ProbeSchedule::remove(EvIndex ev) {
  Plane& plane = planes_[profile_->plane(ev)];
  --plane.size;
  const unsigned gap = places_[index(ev)].index;
  if (gap == plane.size) return;
  put(plane, gap, heap_[plane.begin + plane.size]);
  settle(plane, gap);
}

void ProbeSchedule::on_sent(EvIndex ev, TimeNs now) {
  Place& place = places_[index(ev)];
  next_allowed_ = now + round_trip() / 4;
  if (turns_ != nullptr) {
    turns_->on_sent();
    next_allowed_ = std::max(next_allowed_, turns_->take(now, round_trip() / 16));
  }
  if (place.level < kMaxLevel && period(place.level) < cap_ns_) ++place.level;
  move_to(ev, MRC_BUG(kPathProbesOnlyOnce) ? kNever : now + period(place.level));
}

// The next one is due a period after the last one left.
DurationNs ProbeSchedule::took(EvIndex ev, TimeNs now, std::uint16_t stamp) const {
  return core::round_trip(now, due_[index(ev)] - period(places_[index(ev)].level), stamp);
}

void ProbeSchedule::ask_again_soon(EvIndex ev, TimeNs now) {
  move_to(ev, std::min(due_[index(ev)], now + period(0)));
}

// Equal due times keep the heap in order.
void ProbeSchedule::restart(PortId port, TimeNs now) {
  const Plane& plane = planes_[profile_->plane(port)];
  for (unsigned i = 0; i < plane.size; ++i) {
    const std::uint16_t ev = heap_[plane.begin + i];
    due_[ev] = now;
    places_[ev].level = 0;
  }
}

EvIndex ProbeSchedule::due(TimeNs now, PortMask ports) const {
  if (now < next_allowed_) return kNoEv;
  EvIndex best = kNoEv;
  for (const PortId port : ports) {
    const EvIndex ev = first(port);
    if (best == kNoEv || due_[index(ev)] < due_[index(best)]) best = ev;
  }
  return best != kNoEv && due_[index(best)] <= now ? best : kNoEv;
}

TimeNs ProbeSchedule::next_time(PortMask ports) const {
  if (ports.empty()) return kNever;
  TimeNs earliest = kNever;
  for (const PortId port : ports) {
    const EvIndex ev = first(port);
    earliest = std::min(earliest, due_[index(ev)]);
  }
  return std::max(earliest, next_allowed_);
}

DurationNs ProbeSchedule::period(unsigned level) const {
  const DurationNs base = std::max<DurationNs>(base_ns_, 1);
  return base > (cap_ns_ >> level) ? cap_ns_ : base << level;
}

void ProbeSchedule::move_to(EvIndex ev, TimeNs due) {
  due_[index(ev)] = due;
  settle(planes_[profile_->plane(ev)], places_[index(ev)].index);
}

void ProbeSchedule::put(const Plane& plane, unsigned at, std::uint16_t ev) {
  heap_[plane.begin + at] = ev;
  places_[ev].index = static_cast<std::uint16_t>(at) & kIndexMask;
}

// Moves the entry up or down until the order of due times holds again.
void ProbeSchedule::settle(const Plane& plane, unsigned at) {
  const auto ev_at = [this, &plane](unsigned i) { return heap_[plane.begin + i]; };
  const auto due_at = [this, &ev_at](unsigned i) { return due_[ev_at(i)]; };
  const std::uint16_t ev = ev_at(at);
  const TimeNs key = due_[ev];
  while (at > 0 && key < due_at((at - 1) / 2)) {
    put(plane, at, ev_at((at - 1) / 2));
    at = (at - 1) / 2;
  }
  for (unsigned child = 2 * at + 1; child < plane.size; child = 2 * at + 1) {
    if (child + 1U < plane.size && due_at(child + 1) < due_at(child)) ++child;
    if (due_at(child) >= key) break;
    put(plane, at, ev_at(child));
    at = child;
  }
  put(plane, at, ev);
}

std::size_t ProbeSchedule::memory_bytes() const {
  return due_.memory_bytes() + places_.memory_bytes() + heap_.memory_bytes() +
         planes_.memory_bytes();
}

}  // namespace mrc::core
