#include "controller/apply.h"

#include <algorithm>
#include <functional>
#include <set>
#include <stdexcept>
#include <utility>

#include "controller/on_device.h"
#include "fabric/input_error.h"

namespace mrc::controller {
namespace {

template <typename Spec>
const Spec* find_id(const std::vector<Spec>& specs, std::uint64_t id) {
  const auto found =
      std::find_if(specs.begin(), specs.end(), [&](const Spec& spec) { return spec.id == id; });
  return found == specs.end() ? nullptr : &*found;
}

// Whether `specs` has it, and nothing else under its id.
template <typename Spec>
bool has_only(const std::vector<Spec>& specs, const Spec& spec) {
  bool found = false;
  for (const Spec& known : specs) {
    if (known.id != spec.id) continue;
    if (!same(known, spec)) return false;
    found = true;
  }
  return found;
}

bool contains(const std::vector<mrc_ctl_ev>& evs, const mrc_ctl_ev& ev) {
  return std::any_of(evs.begin(), evs.end(),
                     [&](const mrc_ctl_ev& known) { return same(known, ev); });
}

bool has_ev(const std::vector<mrc_ctl_ev_op_entry>& all, const mrc_ctl_ev& ev) {
  return std::any_of(all.begin(), all.end(),
                     [&](const mrc_ctl_ev_op_entry& entry) { return same(entry.ev, ev); });
}

// What fails in `step` is said with the place in the file that asked for it.
template <typename Step>
void at(const std::string& place, const Step& step) {
  try {
    step();
  } catch (const CtlError& error) {
    throw CtlError(place.empty() ? error.what() : place + ": " + error.what());
  } catch (const fabric::InputError& error) {
    throw fabric::InputError(place.empty() ? error.what() : place + ": " + error.what());
  }
}

template <typename Spec>
void refuse_taken(const Session& session, Kind kind, const std::vector<Spec>& ours,
                  const std::vector<Spec>& wanted) {
  for (const Spec& spec : wanted) {
    if (find_id(ours, spec.id) != nullptr) continue;
    at(spec.place, [&] { refuse_existing(session, kind, spec.id); });
  }
}

class Transition {
 public:
  Transition(const Session& session, const Setup& from, const Setup& to)
      : session_(&session), from_(&from), to_(&to) {}

  Applied run() {
    decide();
    try {
      remove_old(from_->ev_profiles);
      remove_old(from_->cc_profiles);
      remove_old(from_->formats);
      create_new(to_->formats);
      create_new(to_->ev_profiles);
      create_new(to_->cc_profiles);
      set_ports();
      for (const EvSpec& profile : to_->ev_profiles)
        set_denied(profile);
    } catch (const std::exception& error) {
      const std::string left = undo();
      if (left.empty()) throw;
      throw DeviceChanged(std::string(error.what()) + "; not undone: " + left);
    }
    return applied_;
  }

 private:
  template <typename Spec>
  static Kind kind_of() {
    if constexpr (std::is_same_v<Spec, FormatSpec>) return Kind::kFormat;
    if constexpr (std::is_same_v<Spec, EvSpec>) return Kind::kEv;
    return Kind::kCc;
  }
  static const std::vector<FormatSpec>& of(const Setup& setup, const FormatSpec& /*kind*/) {
    return setup.formats;
  }
  static const std::vector<EvSpec>& of(const Setup& setup, const EvSpec& /*kind*/) {
    return setup.ev_profiles;
  }
  static const std::vector<CcSpec>& of(const Setup& setup, const CcSpec& /*kind*/) {
    return setup.cc_profiles;
  }

  // Which profiles stay as they are. Once and for all: later the device has those made anew, too.
  void decide() {
    for (const FormatSpec& format : to_->formats)
      if (is_as_wanted(format)) keep(format);
    for (const EvSpec& profile : to_->ev_profiles)
      if (is_as_wanted(profile) && format_stays(profile)) keep(profile);
    for (const CcSpec& profile : to_->cc_profiles)
      if (is_as_wanted(profile)) keep(profile);
  }
  template <typename Spec>
  void keep(const Spec& spec) {
    kept_.emplace(kind_of<Spec>(), spec.id);
  }
  template <typename Spec>
  bool kept(const Spec& spec) const {
    return kept_.contains({kind_of<Spec>(), spec.id});
  }
  template <typename Spec>
  mrc_ctl_profile_state state(const Spec& spec) const {
    return state_of(*session_, kind_of<Spec>(), spec.id);
  }

  // What is ours in one form alone is taken to have it: to look would be to undo what was changed
  // by hand.
  template <typename Spec>
  bool is_as_wanted(const Spec& wanted) const {
    const std::vector<Spec>& known = of(*from_, wanted);
    if (find_id(known, wanted.id) == nullptr) return false;
    if (has_only(known, wanted)) return state(wanted) == MRC_CTL_PROFILE_ONLINE;
    if constexpr (std::is_same_v<Spec, EvSpec>)
      if (is_ambiguous(wanted)) return false;
    return is_on_device(*session_, wanted);
  }
  // A number of EVs that is left to the device may be its choice or that of another form.
  bool is_ambiguous(const EvSpec& wanted) const {
    if (wanted.count != 0 || !wanted.evs.empty()) return false;
    const auto& profiles = from_->ev_profiles;
    return std::any_of(profiles.begin(), profiles.end(), [&](const EvSpec& known) {
      return known.id == wanted.id && known.count != 0;
    });
  }
  // An EV profile goes with its format, unless that means nothing to it.
  bool format_stays(const EvSpec& profile) const {
    if (!profile.has_format || profile.mode == MRC_CTL_EV_MODE_AUTO) return true;
    const FormatSpec* const format = find_id(to_->formats, profile.format);
    return format == nullptr || kept(*format);
  }

  template <typename Spec>
  void remove_old(const std::vector<Spec>& specs) {
    for (const Spec& spec : specs) {
      if (kept(spec) || state(spec) == MRC_CTL_PROFILE_INIT) continue;
      const Spec& was = form_on_device(specs, spec);
      std::vector<mrc_ctl_ev_op_entry> evs;
      if constexpr (std::is_same_v<Spec, EvSpec>) evs = read_evs(*session_, spec.id);
      remove(*session_, kind_of<Spec>(), spec.id);
      ++applied_.removed;
      undo_.emplace_back([this, &was, evs] {
        create(*session_, was);
        if constexpr (std::is_same_v<Spec, EvSpec>) deny_again(was.id, evs);
      });
    }
  }
  // Of those known under an id; the given one if it is none of them.
  template <typename Spec>
  const Spec& form_on_device(const std::vector<Spec>& specs, const Spec& spec) const {
    for (const Spec& known : specs)
      if (known.id == spec.id && is_on_device(*session_, known)) return known;
    return spec;
  }

  template <typename Spec>
  void create_new(const std::vector<Spec>& specs) {
    for (const Spec& spec : specs) {
      if (kept(spec)) {
        ++applied_.kept;
        continue;
      }
      at(spec.place, [&] { create(*session_, spec); });
      ++applied_.created;
      undo_.emplace_back([this, &spec] {
        if (state(spec) != MRC_CTL_PROFILE_INIT) remove(*session_, kind_of<Spec>(), spec.id);
      });
    }
  }

  void set_ports() {
    const auto& wanted = to_->disabled_ports;
    for (const unsigned port : from_->disabled_ports) {
      const bool is_there = port >= 1 && port <= session_->port_count();
      const bool stays = std::find(wanted.begin(), wanted.end(), port) != wanted.end();
      if (is_there && !stays) change_port(port, true);
    }
    for (const unsigned port : wanted)
      change_port(port, false);
  }
  void change_port(unsigned port, bool enabled) {
    if (port_enabled(*session_, port) == enabled) return;
    set_port(*session_, port, enabled);
    undo_.emplace_back([this, port, enabled] { set_port(*session_, port, !enabled); });
  }

  void deny(std::uint64_t profile, const std::vector<mrc_ctl_ev>& evs) const {
    set_ev_states(*session_, profile, evs, MRC_CTL_EV_DENIED);
  }
  std::vector<mrc_ctl_ev> denied_by_new(const std::vector<mrc_ctl_ev_op_entry>& all,
                                        std::uint64_t profile) const {
    std::vector<mrc_ctl_ev> evs;
    for (const DenySpec& spec : to_->denies) {
      if (spec.profile != profile) continue;
      at(spec.place, [&] {
        for (const mrc_ctl_ev& ev : select_evs(all, spec.evs))
          if (!contains(evs, ev)) evs.push_back(ev);
      });
    }
    return evs;
  }
  // As far as it fits the profile as it is: what is known need not be what was done.
  std::vector<mrc_ctl_ev> denied_by_old(const std::vector<mrc_ctl_ev_op_entry>& all,
                                        std::uint64_t profile) const {
    std::vector<mrc_ctl_ev> evs;
    for (const DenySpec& spec : from_->denies) {
      if (spec.profile != profile) continue;
      for (const mrc_ctl_ev& ev : matching_evs(all, spec.evs))
        evs.push_back(ev);
    }
    return evs;
  }

  // After a profile was made again. EVs that it had before are denied if they were. Those drawn
  // anew are if the one in their place was, and the setup says so of places or ports.
  void deny_again(std::uint64_t profile, const std::vector<mrc_ctl_ev_op_entry>& before) const {
    const std::vector<mrc_ctl_ev_op_entry> all = read_evs(*session_, profile);
    const std::vector<mrc_ctl_ev> by_place = denied_by_old(all, profile);
    std::vector<mrc_ctl_ev> evs;
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (before[i].state != MRC_CTL_EV_DENIED) continue;
      evs.push_back(before[i].ev);
      if (i < all.size() && contains(by_place, all[i].ev)) evs.push_back(all[i].ev);
    }
    std::erase_if(evs, [&](const mrc_ctl_ev& ev) { return !has_ev(all, ev); });
    deny(profile, evs);
  }

  void set_denied(const EvSpec& profile) {
    const std::uint64_t id = profile.id;
    const std::vector<mrc_ctl_ev_op_entry> all = read_evs(*session_, id);
    const std::vector<mrc_ctl_ev> wanted = denied_by_new(all, id);
    std::vector<mrc_ctl_ev> before;
    if (kept(profile)) before = denied_by_old(all, id);
    std::vector<mrc_ctl_ev> freed;
    std::vector<mrc_ctl_ev> taken;
    for (const mrc_ctl_ev_op_entry& entry : all) {
      const bool denied = entry.state == MRC_CTL_EV_DENIED;
      const bool stays = contains(wanted, entry.ev);
      if (denied && !stays && contains(before, entry.ev)) freed.push_back(entry.ev);
      if (!denied && stays) taken.push_back(entry.ev);
    }
    undo_.emplace_back([this, id, freed] { deny(id, freed); });
    undo_.emplace_back([this, id, taken] { set_ev_states(*session_, id, taken, MRC_CTL_EV_GOOD); });
    set_ev_states(*session_, id, freed, MRC_CTL_EV_GOOD);
    // The place of the first that names the profile: an EV nobody knows is refused as a whole.
    const auto spec = std::find_if(to_->denies.begin(), to_->denies.end(),
                                   [&](const DenySpec& one) { return one.profile == id; });
    at(spec == to_->denies.end() ? "" : spec->place, [&] { deny(id, wanted); });
  }

  // The way back as far as it goes. Why it did not go further, or nothing.
  std::string undo() {
    std::string left;
    for (auto step = undo_.rbegin(); step != undo_.rend(); ++step) {
      try {
        (*step)();
      } catch (const std::exception& error) {
        left += (left.empty() ? "" : "; ") + std::string(error.what());
      }
    }
    return left;
  }

  const Session* session_;
  const Setup* from_;
  const Setup* to_;
  std::set<std::pair<Kind, std::uint64_t>> kept_;
  Applied applied_;
  std::vector<std::function<void()>> undo_;
};

}  // namespace

void refuse_taken(const Session& session, const Setup& from, const Setup& to) {
  refuse_taken(session, Kind::kFormat, from.formats, to.formats);
  refuse_taken(session, Kind::kEv, from.ev_profiles, to.ev_profiles);
  refuse_taken(session, Kind::kCc, from.cc_profiles, to.cc_profiles);
}

Applied apply_setup(const Session& session, const Setup& from, const Setup& to) {
  return Transition(session, from, to).run();
}

}  // namespace mrc::controller
