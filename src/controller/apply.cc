#include "controller/apply.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <stdexcept>

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

bool same_ev(const mrc_ctl_ev& a, const mrc_ctl_ev& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

bool contains(const std::vector<mrc_ctl_ev>& evs, const mrc_ctl_ev& ev) {
  return std::any_of(evs.begin(), evs.end(),
                     [&](const mrc_ctl_ev& known) { return same_ev(known, ev); });
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
    try {
      remove_old(Kind::kEv, from_->ev_profiles);
      remove_old(Kind::kCc, from_->cc_profiles);
      remove_old(Kind::kFormat, from_->formats);
      create_new(Kind::kFormat, to_->formats);
      create_new(Kind::kEv, to_->ev_profiles);
      create_new(Kind::kCc, to_->cc_profiles);
      set_ports();
      for (const EvSpec& profile : to_->ev_profiles)
        set_denied(profile);
    } catch (const std::exception&) {
      undo();
      throw;
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

  // Whether a profile of either setup stays as it is. An EV profile goes with its format.
  template <typename Spec>
  bool kept(const Spec& spec) const {
    const Spec* const after = find_id(of(*to_, spec), spec.id);
    if (after == nullptr || !has_only(of(*from_, spec), *after)) return false;
    if (state_of(*session_, kind_of<Spec>(), spec.id) != MRC_CTL_PROFILE_ONLINE) return false;
    if constexpr (std::is_same_v<Spec, EvSpec>) {
      if (!spec.has_format) return true;
      const FormatSpec* const format = find_id(to_->formats, spec.format);
      return format == nullptr || format_kept(*format);
    }
    return true;
  }
  // Also after the old format has been removed.
  bool format_kept(const FormatSpec& format) const { return has_only(from_->formats, format); }

  template <typename Spec>
  void remove_old(Kind kind, const std::vector<Spec>& specs) {
    for (const Spec& spec : specs) {
      if (kept(spec)) continue;
      if (state_of(*session_, kind, spec.id) == MRC_CTL_PROFILE_INIT) continue;
      remove(*session_, kind, spec.id);
      ++applied_.removed;
      undo_.emplace_back([this, &spec] {
        create(*session_, spec);
        if constexpr (std::is_same_v<Spec, EvSpec>) deny(spec.id, denied_by(*from_, spec.id));
      });
    }
  }

  template <typename Spec>
  void create_new(Kind kind, const std::vector<Spec>& specs) {
    for (const Spec& spec : specs) {
      if (kept(spec)) {
        ++applied_.kept;
        continue;
      }
      at(spec.place, [&] { create(*session_, spec); });
      ++applied_.created;
      undo_.emplace_back([this, kind, &spec] { remove(*session_, kind, spec.id); });
    }
  }

  void set_ports() {
    const auto disabled = [](const Setup& setup, unsigned port) {
      const auto& ports = setup.disabled_ports;
      return std::find(ports.begin(), ports.end(), port) != ports.end();
    };
    for (const unsigned port : from_->disabled_ports) {
      if (disabled(*to_, port)) continue;
      set_port(*session_, port, true);
      undo_.emplace_back([this, port] { set_port(*session_, port, false); });
    }
    for (const unsigned port : to_->disabled_ports) {
      set_port(*session_, port, false);
      if (disabled(*from_, port)) continue;
      undo_.emplace_back([this, port] { set_port(*session_, port, true); });
    }
  }

  std::vector<mrc_ctl_ev> denied_by(const Setup& setup, std::uint64_t profile) const {
    std::vector<mrc_ctl_ev> evs;
    for (const DenySpec& spec : setup.denies) {
      if (spec.profile != profile) continue;
      at(spec.place, [&] {
        for (const mrc_ctl_ev& ev : select_evs(read_evs(*session_, profile), spec.evs))
          if (!contains(evs, ev)) evs.push_back(ev);
      });
    }
    return evs;
  }
  void deny(std::uint64_t profile, const std::vector<mrc_ctl_ev>& evs) const {
    set_ev_states(*session_, profile, evs, MRC_CTL_EV_DENIED);
  }

  void set_denied(const EvSpec& profile) {
    const std::uint64_t id = profile.id;
    const std::vector<mrc_ctl_ev> wanted = denied_by(*to_, id);
    std::vector<mrc_ctl_ev> freed;
    std::vector<mrc_ctl_ev> taken;
    if (kept(profile)) freed = denied_by(*from_, id);
    std::erase_if(freed, [&](const mrc_ctl_ev& ev) { return contains(wanted, ev); });
    for (const mrc_ctl_ev_op_entry& entry : read_evs(*session_, id)) {
      const bool denied = entry.state == MRC_CTL_EV_DENIED;
      if (!denied && contains(wanted, entry.ev)) taken.push_back(entry.ev);
    }
    undo_.emplace_back([this, id, freed, taken] {
      deny(id, freed);
      set_ev_states(*session_, id, taken, MRC_CTL_EV_GOOD);
    });
    set_ev_states(*session_, id, freed, MRC_CTL_EV_GOOD);
    // The place of the first that names the profile: an EV nobody knows is refused as a whole.
    const auto spec = std::find_if(to_->denies.begin(), to_->denies.end(),
                                   [&](const DenySpec& one) { return one.profile == id; });
    at(spec == to_->denies.end() ? "" : spec->place, [&] { deny(id, wanted); });
  }

  // The way back as far as it goes; the reason for it is on its way to the user.
  void undo() {
    for (auto step = undo_.rbegin(); step != undo_.rend(); ++step) {
      try {
        (*step)();
      } catch (const std::exception&) {
        continue;
      }
    }
  }

  const Session* session_;
  const Setup* from_;
  const Setup* to_;
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
