#include "core/path_health.h"

#include <limits>

namespace mrc::core {

PathHealth::PathHealth(const EvProfile& profile)
    : profile_(&profile),
      rows_(profile.size()),
      drops_(profile.size()),
      planes_(profile.plane_count()) {
  for (unsigned i = 0; i < profile.size(); ++i) {
    if (profile.entry(EvIndex{static_cast<std::uint16_t>(i)}).denied) {
      rows_[i].standing = PathStanding::kDenied;
    }
  }
}

PathHealth::Outcome PathHealth::on(PathSignal signal, EvIndex ev, bool one_answer_is_enough) {
  Row& row = rows_[index(ev)];
  switch (kReactions[static_cast<unsigned>(row.standing)][static_cast<unsigned>(signal)]) {
    case PathReaction::kNone:
      return Outcome::kStays;
    case PathReaction::kLeave:
      return Outcome::kMustLeave;
    case PathReaction::kCharge:
      charge(row);
      return Outcome::kStays;
    case PathReaction::kExcuse:
      if (row.losses == 0) return Outcome::kStays;
      return --row.losses == 0 && !row.blamed ? Outcome::kMayReturn : Outcome::kStays;
    case PathReaction::kBlame:
      row.blamed = true;
      row.answered_once = false;
      return Outcome::kStays;
    case PathReaction::kAwait:
      if (row.awaits) {
        row.answered_once = false;
        row.blamed = true;
      }
      row.awaits = true;
      return Outcome::kStays;
    case PathReaction::kCredit:
      if (!row.awaits) return Outcome::kStays;
      row.awaits = false;
      if (row.answered_once || one_answer_is_enough) return Outcome::kMayReturn;
      row.answered_once = true;
      return Outcome::kAskAgain;
    case PathReaction::kTakeOut:
      if (row.standing == PathStanding::kBad) leave_list(ev);
      row.standing = PathStanding::kDenied;
      return Outcome::kIsDenied;
    case PathReaction::kLetIn:
      row.standing = PathStanding::kInUse;
      return Outcome::kIsAllowed;
  }
  return Outcome::kStays;
}

void PathHealth::charge(Row& row) {
  if (++row.losses < std::numeric_limits<std::uint8_t>::max()) return;
  row.blamed = true;  // too many to take back one by one
  --row.losses;
}

void PathHealth::go_bad(EvIndex ev) {
  Row& row = rows_[index(ev)];
  Plane& plane = planes_[profile_->plane(ev)];
  row.standing = PathStanding::kBad;
  row.losses = 0;
  row.awaits = row.answered_once = row.blamed = row.on_trial = false;
  row.newer = kNobody;
  row.older = plane.newest;
  (row.older == kNobody ? plane.oldest : rows_[row.older].newer) = static_cast<std::uint16_t>(ev);
  plane.newest = static_cast<std::uint16_t>(ev);
  bad_ports_ = bad_ports_.with(profile_->port(ev));
  ++bad_count_;
}

void PathHealth::come_back(EvIndex ev) {
  leave_list(ev);
  rows_[index(ev)].standing = PathStanding::kInUse;
}

void PathHealth::leave_list(EvIndex ev) {
  const Row& row = rows_[index(ev)];
  Plane& plane = planes_[profile_->plane(ev)];
  (row.older == kNobody ? plane.oldest : rows_[row.older].newer) = row.newer;
  (row.newer == kNobody ? plane.newest : rows_[row.newer].older) = row.older;
  if (plane.oldest == kNobody) bad_ports_ = bad_ports_.without(profile_->port(ev));
  --bad_count_;
}

void PathHealth::forget_probes(PortId port) {
  for (std::uint16_t ev = planes_[profile_->plane(port)].oldest; ev != kNobody;
       ev = rows_[ev].newer) {
    rows_[ev].awaits = rows_[ev].answered_once = false;
  }
}

}  // namespace mrc::core
