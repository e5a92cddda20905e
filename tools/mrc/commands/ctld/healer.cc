#include "commands/ctld/healer.h"

#include <fmt/core.h>

#include <cstdio>

#include "commands/drain/quiet.h"
#include "controller/session.h"
#include "fabric/input_error.h"
#include "instance_lock.h"
#include "text.h"

namespace mrc::tool::ctld {
namespace {

using controller::FabricDrains;
using controller::Proposal;

constexpr drain::Waiter::Seconds kPatience{10};

void say(const std::string& line) {
  fmt::print("{} {}\n", wall_time(), line);
  std::fflush(stdout);
}

std::string looks(unsigned count) {
  return counted(count, "look", "looks") + (count == 1 ? "" : " in a row");
}

}  // namespace

void Healer::take(const controller::Look& look) {
  std::set<std::string> others;
  if (!dry_run_) ours_.clear();
  for (const FabricDrains::Entry& entry : drains_->list())
    (entry.by == node::DrainedBy::kWatch && !dry_run_ ? ours_ : others).insert(entry.name);
  for (const Proposal& proposal : healing_.take(look, ours_, others))
    do_as_proposed(proposal);
}

void Healer::do_as_proposed(const Proposal& proposal) {
  switch (proposal.kind) {
    case Proposal::Kind::kDeny:
      return deny(proposal);
    case Proposal::Kind::kAllow:
      return allow(proposal);
    case Proposal::Kind::kOverLimit:
      return say(fmt::format("leaves {} in use, which loses {}: {} out of use already (--limit)",
                             proposal.part, percent(proposal.loss, 1),
                             counted(limit_, "part is", "parts are")));
  }
}

void Healer::deny(const Proposal& proposal) {
  const std::string loss = percent(proposal.loss, 1);
  const std::string refusal = try_to_drain(proposal.part);
  if (!refusal.empty()) {
    healing_.refused(proposal.part);
    return say(fmt::format("leaves {} in use, which loses {}: {}", proposal.part, loss, refusal));
  }
  ours_.insert(proposal.part);
  say(fmt::format("{} {}, which loses {}: {}, {} of {} out of use",
                  dry_run_ ? "would deny" : "denies", proposal.part, loss, looks(proposal.looks),
                  ours_.size(), limit_));
}

void Healer::allow(const Proposal& proposal) {
  if (!dry_run_) {
    try {
      const InstanceLock lock = drain::lock_for_change(*nodes_);
      drains_->undrain(proposal.part);
    } catch (const fabric::InputError& error) {
      return say(fmt::format("leaves {} out of use: {}", proposal.part, error.what()));
    }
  }
  ours_.erase(proposal.part);
  say(fmt::format("{} {}: sound for {}", dry_run_ ? "would allow" : "allows", proposal.part,
                  looks(proposal.looks)));
}

std::string Healer::try_to_drain(const std::string& part) {
  const fabric::DrainTarget target = fabric::parse_drain_target(part, routing_->topology());
  if (const auto pair = drains_->would_cut_off(target, ours_))
    return fmt::format("it is the only way between hosts {} and {}", pair->one, pair->other);
  if (dry_run_) return {};
  try {
    const InstanceLock lock = drain::lock_for_change(*nodes_);
    drains_->drain(target, node::DrainedBy::kWatch);
    drain::Waiter waiter(part, kPatience);
    if (waiter.until_followed(*drains_, true) != drain::Outcome::kStranded) return {};
    drains_->take_back();
    return fmt::format("it is the only way that {} may take", waiter.obstacle());
  } catch (const fabric::InputError& error) {
    return error.what();
  }
}

}  // namespace mrc::tool::ctld
