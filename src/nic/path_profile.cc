#include "nic/path_profile.h"

#include <algorithm>
#include <bit>
#include <cerrno>

namespace mrc::nic {
namespace {

constexpr std::uint32_t kFirstPort = 0xC000;  // looks like an ephemeral port to the network
constexpr unsigned kMaxDraws = 64;            // of an entropy for one path

bool carried_alike(const core::EvEntry& a, std::uint32_t entropy) {
  return ((a.entropy ^ entropy) & 0xFFFF) == 0;
}

}  // namespace

std::uint32_t entropy_of(wire::EvKind kind, const wire::EvValue& value,
                         const wire::Dialect& dialect) {
  const auto& b = value.bytes;
  const std::uint32_t first = (std::uint32_t{b[0]} << 8) | b[1];
  if (kind == wire::EvKind::kUdpPort) return first;
  const std::uint32_t whole = (first << 16) | (std::uint32_t{b[2]} << 8) | b[3];
  return std::rotl(whole, static_cast<int>(dialect.ev_order));
}

// Paths of the device's own choice differ in the low half of the entropy, which is all that IPv4
// carries. An EV that was listed or drawn is used, whatever others are: its value and its port are
// its name, and copies are allowed.
bool PathProfiles::choose_path(std::vector<core::EvEntry>& entries, PortId port, std::uint32_t wish,
                               bool exactly) {
  const unsigned draws = exactly ? 1 : kMaxDraws;
  for (unsigned draw = 0; draw < draws; ++draw) {
    if (!exactly) wish = (random_->next32() & 0xFFFF'0000) | kFirstPort | (random_->next32() >> 18);
    const auto taken = [&](std::uint32_t entropy) {
      return std::any_of(entries.begin(), entries.end(),
                         [&](const core::EvEntry& e) { return carried_alike(e, entropy); });
    };
    if (!exactly && taken(wish)) continue;
    const Result<std::uint32_t> path = backend_->prepare_path(port, wish);
    if (!path.ok() || (!exactly && taken(path.value()))) continue;
    entries.push_back({.entropy = path.value(), .port = port});
    return true;
  }
  return false;
}

std::uint16_t PathProfiles::active_evs() const {
  const unsigned all = counts_.active_evs_per_port * backend_->port_count();
  return static_cast<std::uint16_t>(std::min(all, kMaxEvsPerQp));
}

PathProfileResult PathProfiles::own() {
  if (own_) return {own_, 0};
  const unsigned ports = backend_->port_count();
  const unsigned total =
      std::min<unsigned>(std::max(counts_.evs_per_port, 1U) * ports, kMaxEvsPerQp);
  std::vector<core::EvEntry> entries;
  for (unsigned i = 0; i < total; ++i)
    choose_path(entries, static_cast<PortId>(i % ports + 1), 0, /*exactly=*/false);
  Result<core::EvProfile> made = core::EvProfile::create(entries);
  if (!made.ok()) return {nullptr, EIO};
  own_ = std::make_shared<PathProfile>();
  own_->profile = std::move(made).value();
  return {own_, 0};
}

// Denied marks may differ; they are brought up to date by whoever applies the node's state.
bool PathProfiles::same_paths(const PathProfile& built, const node::NodeEvProfile& now) {
  return built.min_active == now.min_active;
}

PathProfileResult PathProfiles::of_node(const node::NodeSnapshot& snapshot, std::uint64_t id) {
  const auto found = snapshot.ev_profiles.find(id);
  if (found == snapshot.ev_profiles.end()) return {nullptr, ENOENT};
  const node::NodeEvProfile& node = found->second;
  if (node.state != node::ProfileState::kOnline) return {nullptr, EINVAL};
  const auto unchanged = [](const node::ProfileEv& a, const node::ProfileEv& b) {
    return a.value == b.value && a.port == b.port;
  };
  Built& known = built_[id];
  std::shared_ptr<PathProfile> usable = known.profile.lock();
  if (usable && same_paths(*usable, node) &&
      std::equal(known.source.begin(), known.source.end(), node.evs.begin(), node.evs.end(),
                 unchanged)) {
    return {usable, 0};
  }
  const auto format = snapshot.formats.find(node.format_id);
  const wire::EvKind kind =
      format == snapshot.formats.end() ? wire::EvKind::kStructured : format->second.kind;
  auto made = std::make_shared<PathProfile>();
  made->from_node = true;
  made->node_id = id;
  made->min_active = node.min_active;
  made->srv6 = is_srv6(kind) && node.mode != node::EvMode::kAuto;
  give_back_unused();  // there is a limit to what the back end can hold
  const unsigned ports = backend_->port_count();
  std::vector<core::EvEntry> entries;
  for (std::size_t i = 0; i < node.evs.size() && entries.size() < kMaxEvsPerQp; ++i) {
    const node::ProfileEv& ev = node.evs[i];
    const bool free_choice = node.mode == node::EvMode::kAuto || is_srv6(kind);
    const PortId port = ev.port == kNoPort ? static_cast<PortId>(i % ports + 1) : ev.port;
    const bool usable_port = static_cast<unsigned>(port) <= ports;
    // What was chosen for an EV that stays is its path, with the socket it has.
    const core::EvEntry* chosen =
        free_choice && usable ? usable->entry_at(entries.size(), ev) : nullptr;
    if (chosen != nullptr) {
      entries.push_back(*chosen);
    } else if (!usable_port ||
               !choose_path(entries, port, entropy_of(kind, ev.value, dialect_), !free_choice)) {
      made->unusable.push_back(ev);
      continue;
    }
    entries.back().denied = ev.denied;
    made->evs.push_back(ev);
  }
  Result<core::EvProfile> profile = core::EvProfile::create(entries);
  if (!profile.ok()) return {nullptr, EINVAL};
  made->profile = std::move(profile).value();
  known = {made, node.evs};
  made_.push_back(made);
  return {made, 0};
}

void PathProfiles::give_back_unused() {
  std::vector<core::EvEntry> needed;
  const auto need = [&](const core::EvProfile& profile) {
    for (unsigned i = 0; i < profile.size(); ++i)
      needed.push_back(profile.entry(EvIndex{static_cast<std::uint16_t>(i)}));
  };
  if (own_) need(own_->profile);
  std::erase_if(made_, [&](const std::weak_ptr<PathProfile>& each) {
    const std::shared_ptr<PathProfile> used = each.lock();
    if (used) need(used->profile);
    return !used;
  });
  backend_->keep_paths(needed);
}

}  // namespace mrc::nic
