// EVs one by one: replacing, states, and their two forms.
#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "api/ctl.h"
#include "api/refusal.h"
#include "base/prng.h"

namespace mrc::api {
namespace {

using node::EvFormatProfile;
using node::EvMode;
using node::NodeEvProfile;
using node::NodeSnapshot;
using node::NodeState;
using node::ProfileEv;
using node::ProfileState;

constexpr unsigned kMaxDraws = 64;  // of one EV that nobody has yet
constexpr auto kKnownFlags = static_cast<std::uint32_t>(MRC_CTL_EV_OP_F_ALL_COPIES);

ProfileEv from_api(const mrc_ctl_ev& ev) {
  ProfileEv entry;
  std::copy(std::begin(ev.val), std::end(ev.val), entry.compact.bytes.begin());
  entry.port = PortId{ev.port};
  entry.populated = ev.port != 0;
  entry.value = entry.compact;
  return entry;
}

bool same_ev(const ProfileEv& a, const ProfileEv& b) {
  return a.port == b.port && a.compact == b.compact;
}

// Calls `change` for the first or for all copies of an EV. ENOENT when there is none.
template <typename Change>
int for_copies(NodeEvProfile& profile, const ProfileEv& wanted, bool all, const Change& change) {
  bool found = false;
  for (ProfileEv& ev : profile.evs) {
    if (!same_ev(ev, wanted)) continue;
    found = true;
    change(ev);
    if (!all) break;
  }
  return found ? 0 : ENOENT;
}

int check_new_ev(const EvFormatProfile* format, const CtlLimits& limits,
                 const NodeEvProfile& profile, ProfileEv& fresh) {
  if (!fresh.populated) {  // taking an EV out again, while nobody uses the profile
    const bool empty = fresh.compact == wire::EvValue{};
    return empty && profile.state == ProfileState::kOffline ? 0 : EINVAL;
  }
  if (static_cast<unsigned>(fresh.port) > limits.port_count)
    return refused(EINVAL, "ev_new.port", static_cast<unsigned>(fresh.port),
                   "the device has no such port");
  return format == nullptr ? 0 : expand(*format, profile.fields, fresh);
}

// What a controller may say of an EV; what it assumes bad is not used either.
int take_state(int state, ProfileEv& ev) {
  if (state != MRC_CTL_EV_GOOD && state != MRC_CTL_EV_ASSUMED_BAD && state != MRC_CTL_EV_DENIED)
    return refused(EINVAL, "state", state, "one of GOOD, ASSUMED_BAD and DENIED");
  ev.denied = state != MRC_CTL_EV_GOOD;
  ev.assumed_bad = state == MRC_CTL_EV_ASSUMED_BAD;
  return 0;
}

// Programs made from the published examples leave the state out: 0 counts as good.
int replace_ev(const EvFormatProfile* format, const CtlLimits& limits, NodeEvProfile& profile,
               const mrc_ctl_ev_op_entry& entry) {
  if ((entry.flags & ~kKnownFlags) != 0) return EINVAL;
  ProfileEv fresh = from_api(entry.ev_new);
  const int state = raw(entry.state) == 0 ? MRC_CTL_EV_GOOD : raw(entry.state);
  if (const int error = fresh.populated ? take_state(state, fresh) : 0; error != 0) return error;
  if (const int error = check_new_ev(format, limits, profile, fresh); error != 0) return error;
  return for_copies(profile, from_api(entry.ev), (entry.flags & kKnownFlags) != 0,
                    [&](ProfileEv& ev) { ev = fresh; });
}

int set_ev_state(NodeEvProfile& profile, const mrc_ctl_ev_op_entry& entry) {
  if ((entry.flags & ~kKnownFlags) != 0) return EINVAL;
  ProfileEv said;
  if (const int error = take_state(raw(entry.state), said); error != 0) return error;
  const ProfileEv wanted = from_api(entry.ev);
  if (!wanted.populated) return ENOENT;
  return for_copies(profile, wanted, (entry.flags & kKnownFlags) != 0, [&](ProfileEv& ev) {
    ev.denied = said.denied;
    ev.assumed_bad = said.assumed_bad;
  });
}

// Draws EVs so that, as far as there are enough of them, no two have the same value, and otherwise
// no two of one port do.
class EvDrawer {
 public:
  EvDrawer(const NodeEvProfile& profile, unsigned port_count)
      : profile_(&profile), port_count_(port_count), random_(profile.seed) {}

  ProfileEv draw(std::size_t position) {
    ProfileEv ev;
    ev.port = PortId{static_cast<std::uint8_t>(position % port_count_ + 1)};
    ev.populated = true;
    for (unsigned attempt = 0; attempt < 2 * kMaxDraws; ++attempt) {
      ev.compact = draw_value();
      const bool fresh = values_.count(ev.compact.bytes) == 0;
      const bool fresh_here = here_.count({ev.port, ev.compact.bytes}) == 0;
      if (fresh || (fresh_here && attempt >= kMaxDraws)) break;
    }
    values_.insert(ev.compact.bytes);
    here_.insert({ev.port, ev.compact.bytes});
    return ev;
  }

 private:
  using Bytes = std::array<std::uint8_t, wire::kEvBytes>;

  wire::EvValue draw_value() {
    if (profile_->mode == EvMode::kAuto) return wire::structured_ev(random_.next32());
    return wire::generate_ev(profile_->fields, [this] { return random_.next64(); });
  }

  const NodeEvProfile* profile_;
  unsigned port_count_;
  Prng random_;
  std::set<Bytes> values_;
  std::set<std::pair<PortId, Bytes>> here_;
};

void draw_evs(const CtlLimits& limits, NodeEvProfile& profile) {
  EvDrawer drawer(profile, limits.port_count);
  for (std::size_t i = 0; i < profile.evs.size(); ++i) {
    ProfileEv drawn = drawer.draw(i);
    ProfileEv& ev = profile.evs[i];
    if (same_ev(ev, drawn)) {  // drawn before: what a controller said of it still holds
      drawn.denied = ev.denied;
      drawn.assumed_bad = ev.assumed_bad;
    }
    ev = drawn;
  }
}

bool bits_behind(const wire::EvValue& value, unsigned width_bits) {
  return !all_zero(std::span(value.bytes).subspan(width_bits / 8));
}

}  // namespace

mrc_ctl_ev to_api(const ProfileEv& ev) {
  mrc_ctl_ev out{};
  std::copy(ev.compact.bytes.begin(), ev.compact.bytes.end(), std::begin(out.val));
  out.port = static_cast<std::uint8_t>(ev.port);
  return out;
}

mrc_ctl_ev_state state_of(const ProfileEv& ev, std::span<const NodeState::EvOpinion> opinions) {
  if (!ev.populated) return MRC_CTL_EV_UNKNOWN;
  if (ev.assumed_bad) return MRC_CTL_EV_ASSUMED_BAD;
  if (ev.denied) return MRC_CTL_EV_DENIED;
  const bool bad = std::any_of(opinions.begin(), opinions.end(), [&](const auto& opinion) {
    return opinion.port == ev.port && opinion.value == ev.value &&
           opinion.state == core::EvState::kAssumedBad;
  });
  return bad ? MRC_CTL_EV_ASSUMED_BAD : MRC_CTL_EV_GOOD;
}

const EvFormatProfile* format_of(const NodeSnapshot& state, const NodeEvProfile& profile) {
  const auto format = state.formats.find(profile.format_id);
  if (format == state.formats.end() || format->second.field_widths.empty()) return nullptr;
  return &format->second;
}

int expand(const EvFormatProfile& format, std::span<const wire::EvField> fields, ProfileEv& ev) {
  if (fields.empty()) {
    if (bits_behind(ev.compact, wire::ev_width_bits(format.kind))) return EINVAL;
    ev.value = ev.compact;
    return 0;
  }
  const wire::EvFormat widths{format.kind, format.field_widths};
  if (!wire::check_ev_profile(widths, fields).ok()) return EINVAL;
  const Result<wire::EvValue> expanded = wire::expand_ev(widths, fields, ev.compact);
  if (!expanded.ok()) return EINVAL;
  ev.value = expanded.value();
  return 0;
}

int settle_evs(const NodeSnapshot& state, const CtlLimits& limits, NodeEvProfile& profile) {
  if (profile.mode == EvMode::kAuto) {
    draw_evs(limits, profile);
    for (ProfileEv& ev : profile.evs)
      ev.value = ev.compact;
    return 0;
  }
  const EvFormatProfile* format = format_of(state, profile);
  if (format == nullptr || format->state != ProfileState::kOnline)
    return refused(EINVAL, "ev_fmt_profile_id", static_cast<std::int64_t>(profile.format_id),
                   "no format of that id is ONLINE");
  if (profile.mode == EvMode::kGenerated) draw_evs(limits, profile);
  for (ProfileEv& ev : profile.evs) {
    if (!ev.populated) return refused(EINVAL, "not all of its EVs are filled by REPLACE_EV");
    if (const int error = expand(*format, profile.fields, ev); error != 0) return error;
  }
  return 0;
}

int replace_evs(const EvFormatProfile* format, const CtlLimits& limits, NodeEvProfile& profile,
                std::span<const mrc_ctl_ev_op_entry> entries) {
  for (const mrc_ctl_ev_op_entry& entry : entries) {
    if (const int error = replace_ev(format, limits, profile, entry); error != 0) return error;
  }
  return 0;
}

int set_ev_states(NodeEvProfile& profile, std::span<const mrc_ctl_ev_op_entry> entries) {
  for (const mrc_ctl_ev_op_entry& entry : entries) {
    if (const int error = set_ev_state(profile, entry); error != 0) return error;
  }
  return 0;
}

int query_ev_states(const NodeEvProfile& profile, std::span<const NodeState::EvOpinion> opinions,
                    std::span<mrc_ctl_ev_op_entry> entries) {
  for (mrc_ctl_ev_op_entry& entry : entries) {
    const ProfileEv wanted = from_api(entry.ev);
    const auto found =
        std::find_if(profile.evs.begin(), profile.evs.end(),
                     [&](const ProfileEv& ev) { return same_ev(ev, wanted) && ev.populated; });
    if (found == profile.evs.end()) return ENOENT;
    entry.state = state_of(*found, opinions);
  }
  return 0;
}

}  // namespace mrc::api
