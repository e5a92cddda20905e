#include "controller/healing.h"

#include <algorithm>
#include <utility>

namespace mrc::controller {

void Healing::note(const Look& look, const std::set<std::string>& denied) {
  for (const std::string& name : denied)
    parts_.try_emplace(name);
  std::set<std::string> accused;
  for (const Look::Fault& fault : look.faults) {
    accused.insert(fault.part);
    if (!fault.certain || fault.loss < policy_.least_loss) continue;
    Part& part = parts_[fault.part];
    part.loss = fault.loss;
    ++part.bad;
    part.sound = 0;
  }
  for (auto& [name, part] : parts_) {
    const bool is_denied = denied.contains(name);
    if (is_denied != part.denied) part.sound = 0;
    if (part.denied && !is_denied) part.returns = std::min(part.returns + 1, kMostDoublings);
    part.denied = is_denied;
    part.barred -= std::min(part.barred, 1U);
    if (accused.contains(name) || look.in_doubt.contains(name)) continue;
    part.bad = 0;
    part.told = false;
    ++part.sound;
  }
}

// One that has been in use and sound for long begins anew, should it fail again.
void Healing::forget_the_sound() {
  std::erase_if(parts_, [&](const auto& entry) {
    const Part& part = entry.second;
    return !part.denied && part.bad == 0 &&
           (part.returns == 0 || part.sound >= 4 * wanted_until_return(part));
  });
}

std::vector<Proposal> Healing::take(const Look& look, const std::set<std::string>& denied,
                                    const std::set<std::string>& others) {
  note(look, denied);
  std::vector<Proposal> proposals;
  std::size_t out_of_use = denied.size();
  for (const auto& [name, part] : parts_) {
    if (!part.denied || part.sound < wanted_until_return(part)) continue;
    proposals.push_back({.kind = Proposal::Kind::kAllow, .part = name, .looks = part.sound});
    --out_of_use;
  }
  std::vector<std::pair<const std::string, Part>*> bad;
  for (auto& entry : parts_) {
    const Part& part = entry.second;
    if (!part.denied && part.barred == 0 && part.bad >= policy_.deny_after &&
        !others.contains(entry.first))
      bad.push_back(&entry);
  }
  std::stable_sort(bad.begin(), bad.end(),
                   [](const auto* a, const auto* b) { return a->second.loss > b->second.loss; });
  for (auto* entry : bad) {
    auto& [name, part] = *entry;
    const bool over = out_of_use >= policy_.limit;
    if (over && std::exchange(part.told, true)) continue;
    proposals.push_back({.kind = over ? Proposal::Kind::kOverLimit : Proposal::Kind::kDeny,
                         .part = name,
                         .loss = part.loss,
                         .looks = part.bad});
    if (!over) ++out_of_use;
  }
  forget_the_sound();
  return proposals;
}

void Healing::refused(const std::string& part) {
  if (const auto found = parts_.find(part); found != parts_.end())
    found->second.barred = policy_.allow_after;
}

}  // namespace mrc::controller
