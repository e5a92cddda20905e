// EV profiles: their life, attributes and batches of operations.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "api/ctl.h"
#include "api/refusal.h"

namespace mrc::api {
namespace {

using node::EvMode;
using node::NodeEvProfile;
using node::NodeSnapshot;
using node::NodeState;
using node::ProfileState;

constexpr std::uint32_t kEvBits =
    MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_CUR_STATE | MRC_CTL_EV_PROFILE_MODE |
    MRC_CTL_EV_PROFILE_FMT_ID | MRC_CTL_EV_PROFILE_COUNT | MRC_CTL_EV_PROFILE_MIN_ACTIVE |
    MRC_CTL_EV_PROFILE_EVENT_MASK | MRC_CTL_EV_PROFILE_EV_OP | MRC_CTL_EV_PROFILE_EV_FIELDS_OP |
    static_cast<std::uint32_t>(MRC_CTL_EV_PROFILE_VENDOR_CFG);
constexpr int kBothOps = MRC_CTL_EV_PROFILE_EV_OP | MRC_CTL_EV_PROFILE_EV_FIELDS_OP;
constexpr int kIdentity = MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_CUR_STATE;
constexpr int kEventStates = MRC_CTL_EV_GOOD | MRC_CTL_EV_ASSUMED_BAD;

bool mode_of_api(int mode, EvMode& out) {
  switch (mode) {
    case MRC_CTL_EV_MODE_AUTO:
      out = EvMode::kAuto;
      return true;
    case MRC_CTL_EV_MODE_EXP:
      out = EvMode::kExplicit;
      return true;
    case MRC_CTL_EV_MODE_GEN:
      out = EvMode::kGenerated;
      return true;
    default:
      return false;
  }
}

mrc_ctl_ev_mode mode_to_api(EvMode mode) {
  switch (mode) {
    case EvMode::kAuto:
      return MRC_CTL_EV_MODE_AUTO;
    case EvMode::kExplicit:
      return MRC_CTL_EV_MODE_EXP;
    case EvMode::kGenerated:
      break;
  }
  return MRC_CTL_EV_MODE_GEN;
}

std::size_t total_evs(const NodeSnapshot& state) {
  std::size_t total = 0;
  for (const auto& [id, profile] : state.ev_profiles)
    total += profile.evs.size();
  return total;
}

// One call to modify a profile. `profile` is a copy that becomes the profile when all went well.
struct EvChange {
  const NodeSnapshot& state;
  const CtlLimits& limits;
  std::span<const NodeState::EvOpinion> opinions;
  mrc_ctl_ev_profile_attr& attr;
  int mask;
  ProfileStep step{};
  NodeEvProfile profile;
  std::size_t had_evs = 0;  // before the call
  int batch_error = 0;

  bool has(int bit) const { return (mask & bit) != 0; }
  bool modifies_fields() const {
    return has(MRC_CTL_EV_PROFILE_EV_FIELDS_OP) &&
           raw(attr.ev_fields_op.op) != MRC_CTL_EV_FIELDS_OP_QUERY_FIELDS;
  }
  bool modifies_evs() const {
    if (!has(MRC_CTL_EV_PROFILE_EV_OP)) return false;
    const int op = raw(attr.ev_op.op);
    return op != MRC_CTL_EV_OP_QUERY_EV_STATE && op != MRC_CTL_EV_OP_QUERY_EV_ARRAY;
  }
};

// As many EVs as the call asks for; those there are keep their places.
int take_count(EvChange& change) {
  const bool given = change.has(MRC_CTL_EV_PROFILE_COUNT);
  if (!given && change.profile.mode != EvMode::kAuto) return EINVAL;
  std::uint64_t count = given ? change.attr.ev_count : change.limits.auto_ev_count;
  if (count == 0) return refused(EINVAL, "ev_count", 0, "1 at least");
  if (change.profile.mode == EvMode::kExplicit) {
    const std::uint64_t align = change.limits.ev_count_align;
    count = (count + align - 1) / align * align;
  }
  if (count > kMaxEvsPerQp)
    return refused(E2BIG, "ev_count", static_cast<std::int64_t>(count),
                   "more than ev_max_count_profile");
  const std::size_t others = total_evs(change.state) - change.had_evs;
  if (others + count > node::kMaxNodeEvs)
    return refused(E2BIG, "ev_count", static_cast<std::int64_t>(count), "more than ev_free_count");
  change.profile.evs.resize(count);
  return 0;
}

int take_mode_and_format(EvChange& change) {
  NodeEvProfile& profile = change.profile;
  if (change.has(MRC_CTL_EV_PROFILE_MODE) && !mode_of_api(raw(change.attr.ev_mode), profile.mode))
    return refused(EINVAL, "ev_mode", raw(change.attr.ev_mode), "one of AUTO, EXP and GEN");
  if (!change.has(MRC_CTL_EV_PROFILE_FMT_ID)) return 0;
  profile.format_id = change.attr.ev_fmt_profile_id;
  if (change.state.formats.count(profile.format_id) != 0) return 0;
  return refused(EINVAL, "ev_fmt_profile_id", static_cast<std::int64_t>(profile.format_id),
                 "no format of that id exists");
}

// INIT -> OFFLINE: mode, format and count, and the fields of generated profiles.
int create_profile(EvChange& change) {
  NodeEvProfile& profile = change.profile;
  if (!change.has(MRC_CTL_EV_PROFILE_MODE)) return EINVAL;
  if (change.state.ev_profiles.size() >= node::kMaxEvProfiles) return E2BIG;
  if (const int error = take_mode_and_format(change); error != 0) return error;
  if (profile.mode != EvMode::kAuto && !change.has(MRC_CTL_EV_PROFILE_FMT_ID)) return EINVAL;
  if (profile.mode == EvMode::kGenerated && !change.modifies_fields()) return EINVAL;
  if (change.modifies_evs()) return EINVAL;
  profile.state = ProfileState::kOffline;
  return take_count(change);
}

// OFFLINE all of it may change. Another mode or format makes the EVs anew, since those listed or
// drawn for the old one mean nothing in it.
int reshape(EvChange& change) {
  NodeEvProfile& profile = change.profile;
  const EvMode mode = profile.mode;
  const std::uint64_t format = profile.format_id;
  if (const int error = take_mode_and_format(change); error != 0) return error;
  if (profile.mode != mode || profile.format_id != format)
    profile.evs.assign(profile.evs.size(), {});
  return change.has(MRC_CTL_EV_PROFILE_COUNT) ? take_count(change) : 0;
}

// ONLINE it may be said again, but not changed.
int check_unchanged(const EvChange& change) {
  const NodeEvProfile& profile = change.profile;
  EvMode mode{};
  if (change.has(MRC_CTL_EV_PROFILE_MODE) &&
      (!mode_of_api(raw(change.attr.ev_mode), mode) || mode != profile.mode))
    return EINVAL;
  if (change.has(MRC_CTL_EV_PROFILE_FMT_ID) && change.attr.ev_fmt_profile_id != profile.format_id)
    return EINVAL;
  if (change.has(MRC_CTL_EV_PROFILE_COUNT) && change.attr.ev_count != profile.evs.size())
    return EINVAL;
  return 0;
}

int take_settings(EvChange& change) {
  NodeEvProfile& profile = change.profile;
  if (change.has(MRC_CTL_EV_PROFILE_MIN_ACTIVE)) {
    const std::uint32_t wanted = change.attr.ev_min_active;
    if (profile.state == ProfileState::kOnline && wanted != profile.min_active)
      return refused(EINVAL, "ev_min_active", wanted, "ONLINE it does not change");
    profile.min_active = wanted;
    profile.has_min_active = true;
  }
  if (profile.min_active > profile.evs.size())
    return refused(EINVAL, "ev_min_active", profile.min_active, "more than ev_count");
  if (change.has(MRC_CTL_EV_PROFILE_EVENT_MASK)) {
    if ((change.attr.ev_event_mask & ~kEventStates) != 0)
      return refused(EINVAL, "ev_event_mask", change.attr.ev_event_mask, "GOOD and ASSUMED_BAD");
    profile.event_mask = static_cast<std::uint32_t>(change.attr.ev_event_mask);
    profile.has_event_mask = true;
  }
  return 0;
}

int take_fields(EvChange& change) {
  const auto& op = change.attr.ev_fields_op;
  NodeEvProfile& profile = change.profile;
  if (raw(op.op) != MRC_CTL_EV_FIELDS_OP_MODIFY_FIELDS || profile.mode == EvMode::kAuto)
    return EINVAL;
  if (op.fields == nullptr || op.field_count < 1) return EINVAL;
  if (static_cast<std::size_t>(op.field_count) > node::kMaxFormatFields) return EINVAL;
  std::vector<wire::EvField> fields;
  fields.reserve(static_cast<std::size_t>(op.field_count));
  for (int i = 0; i < op.field_count; ++i) {
    const mrc_ctl_ev_field& field = op.fields[i];
    fields.push_back({.width = field.width,
                      .init_val = field.init_val,
                      .min_val = field.min_val,
                      .max_val = field.max_val,
                      .mask = field.mask});
  }
  if (const node::EvFormatProfile* format = format_of(change.state, profile); format != nullptr) {
    const Status checked = wire::check_ev_profile({format->kind, format->field_widths}, fields);
    if (!checked.ok())
      return refused(EINVAL, "field_count", op.field_count,
                     "width, values and mask of each must fit it, and they its format");
  }
  profile.fields = std::move(fields);
  if (profile.state != ProfileState::kOnline) return 0;
  return settle_evs(change.state, change.limits, profile);
}

int take_ev_op(EvChange& change) {
  const auto& op = change.attr.ev_op;
  const int kind = raw(op.op);
  if (kind != MRC_CTL_EV_OP_REPLACE_EV && kind != MRC_CTL_EV_OP_MODIFY_EV_STATE) return EINVAL;
  if (op.entries == nullptr || op.entry_count < 1) return EINVAL;
  if (static_cast<std::uint32_t>(op.entry_count) > kMaxEvOpEntries) return E2BIG;
  const std::span<const mrc_ctl_ev_op_entry> entries(op.entries,
                                                     static_cast<std::size_t>(op.entry_count));
  if (kind == MRC_CTL_EV_OP_MODIFY_EV_STATE) {
    change.batch_error = set_ev_states(change.profile, entries);
    return 0;
  }
  if (change.profile.mode != EvMode::kExplicit) return EINVAL;
  change.batch_error =
      replace_evs(format_of(change.state, change.profile), change.limits, change.profile, entries);
  return 0;
}

// The last thing of a call, when all else is in place. Whether a profile may go offline is for the
// node's state to say, which knows the users.
int take_ev_step(EvChange& change) {
  NodeEvProfile& profile = change.profile;
  if (change.step == ProfileStep::kGoOnline) {
    if (!profile.has_min_active || !profile.has_event_mask)
      return refused(EINVAL, "ev_min_active and ev_event_mask are to be given before ONLINE");
    if (profile.mode == EvMode::kGenerated && profile.fields.empty()) return EINVAL;
    if (const int error = settle_evs(change.state, change.limits, profile); error != 0)
      return error;
  }
  profile.state = state_after(change.step, profile.state);
  return 0;
}

int query_evs(const NodeEvProfile& profile, std::span<const NodeState::EvOpinion> opinions,
              mrc_ctl_ev_profile_attr& attr) {
  auto& op = attr.ev_op;
  if (raw(op.op) == MRC_CTL_EV_OP_QUERY_EV_STATE) {
    if (op.entries == nullptr || op.entry_count < 1) return EINVAL;
    if (static_cast<std::uint32_t>(op.entry_count) > kMaxEvOpEntries) return E2BIG;
    return query_ev_states(profile, opinions,
                           std::span(op.entries, static_cast<std::size_t>(op.entry_count)));
  }
  if (raw(op.op) != MRC_CTL_EV_OP_QUERY_EV_ARRAY) return EINVAL;
  if (const int error = check_room(profile.evs.size(), op.entries, op.entry_count); error != 0)
    return error;
  for (std::size_t i = 0; i < profile.evs.size(); ++i) {
    op.entries[i] = {};
    op.entries[i].ev = to_api(profile.evs[i]);
    op.entries[i].state = state_of(profile.evs[i], opinions);
  }
  return 0;
}

int query_fields(const NodeEvProfile& profile, mrc_ctl_ev_profile_attr& attr) {
  auto& op = attr.ev_fields_op;
  if (raw(op.op) != MRC_CTL_EV_FIELDS_OP_QUERY_FIELDS) return EINVAL;
  if (const int error = check_room(profile.fields.size(), op.fields, op.field_count); error != 0)
    return error;
  for (std::size_t i = 0; i < profile.fields.size(); ++i) {
    const wire::EvField& field = profile.fields[i];
    op.fields[i] = {.width = field.width,
                    .init_val = field.init_val,
                    .min_val = field.min_val,
                    .max_val = field.max_val,
                    .mask = field.mask};
  }
  return 0;
}

// What a call asks for besides its change, of the profile as it is then.
int answer_queries(EvChange& change) {
  if (change.has(MRC_CTL_EV_PROFILE_EV_OP) && !change.modifies_evs()) {
    if (const int error = query_evs(change.profile, change.opinions, change.attr); error != 0)
      return error;
  }
  if (!change.has(MRC_CTL_EV_PROFILE_EV_FIELDS_OP) || change.modifies_fields()) return 0;
  return query_fields(change.profile, change.attr);
}

int apply(EvChange& change) {
  const bool leaving =
      change.step == ProfileStep::kGoOffline || change.step == ProfileStep::kRemove;
  if (leaving && (change.mask & ~kIdentity) != 0) return EINVAL;
  int error = 0;
  if (change.step == ProfileStep::kCreate) {
    error = create_profile(change);
  } else if (change.profile.state == ProfileState::kInit) {
    return (change.mask & ~kIdentity) == 0 ? 0 : EINVAL;  // asked only whether it is in INIT
  } else {
    const bool online = change.profile.state == ProfileState::kOnline;
    error = online ? check_unchanged(change) : reshape(change);
  }
  if (error == 0) error = take_settings(change);
  if (error == 0 && change.modifies_fields()) error = take_fields(change);
  if (error == 0 && change.modifies_evs()) error = take_ev_op(change);
  if (error != 0) return error;
  // A batch that stopped does not take the profile any further.
  if (change.batch_error != 0) return 0;
  error = take_ev_step(change);
  return error != 0 ? error : answer_queries(change);
}

}  // namespace

int modify_ev_profile(NodeSnapshot& state, const CtlLimits& limits,
                      std::span<const NodeState::EvOpinion> opinions, std::uint64_t id,
                      mrc_ctl_ev_profile_attr& attr, int mask, int& batch_error) {
  if (!mask_within(mask, kEvBits) || (mask & kBothOps) == kBothOps) return EINVAL;
  if ((mask & MRC_CTL_EV_PROFILE_VENDOR_CFG) != 0 && !all_zero(attr.vendor_cfg)) return EINVAL;
  const auto known = state.ev_profiles.find(id);
  EvChange change{
      .state = state, .limits = limits, .opinions = opinions, .attr = attr, .mask = mask};
  if (known != state.ev_profiles.end()) change.profile = known->second;
  change.had_evs = change.profile.evs.size();
  const int wrong_step = find_step({.from = change.profile.state,
                                    .has_state = (mask & MRC_CTL_EV_PROFILE_STATE) != 0,
                                    .state = raw(attr.profile_state),
                                    .has_current = (mask & MRC_CTL_EV_PROFILE_CUR_STATE) != 0,
                                    .current = raw(attr.cur_profile_state)},
                                   change.step);
  if (wrong_step != 0) return wrong_step;
  if (change.step == ProfileStep::kCreate) change.profile.seed = limits.seed;
  if (const int error = apply(change); error != 0) return error;
  batch_error = change.batch_error;
  if (change.has(MRC_CTL_EV_PROFILE_COUNT))
    attr.ev_count = static_cast<std::uint32_t>(change.profile.evs.size());
  if (change.profile.state == ProfileState::kInit) {
    state.ev_profiles.erase(id);
  } else {
    state.ev_profiles[id] = std::move(change.profile);
  }
  return 0;
}

int query_ev_profile(const NodeSnapshot& state, std::span<const NodeState::EvOpinion> opinions,
                     std::uint64_t id, mrc_ctl_ev_profile_attr& attr, int mask) {
  if (!mask_within(mask, kEvBits) || (mask & kBothOps) == kBothOps) return EINVAL;
  const auto known = state.ev_profiles.find(id);
  const NodeEvProfile none;
  const NodeEvProfile& profile = known == state.ev_profiles.end() ? none : known->second;
  constexpr int kDetails = MRC_CTL_EV_PROFILE_MODE | MRC_CTL_EV_PROFILE_FMT_ID;
  if (profile.state == ProfileState::kInit && (mask & kDetails) != 0) return EINVAL;
  if ((mask & MRC_CTL_EV_PROFILE_EV_OP) != 0) {
    if (const int error = query_evs(profile, opinions, attr); error != 0) return error;
  }
  if ((mask & MRC_CTL_EV_PROFILE_EV_FIELDS_OP) != 0) {
    if (const int error = query_fields(profile, attr); error != 0) return error;
  }
  if ((mask & MRC_CTL_EV_PROFILE_STATE) != 0) attr.profile_state = to_api(profile.state);
  if ((mask & MRC_CTL_EV_PROFILE_CUR_STATE) != 0) attr.cur_profile_state = to_api(profile.state);
  if ((mask & MRC_CTL_EV_PROFILE_MODE) != 0) attr.ev_mode = mode_to_api(profile.mode);
  if ((mask & MRC_CTL_EV_PROFILE_FMT_ID) != 0) attr.ev_fmt_profile_id = profile.format_id;
  if ((mask & MRC_CTL_EV_PROFILE_COUNT) != 0)
    attr.ev_count = static_cast<std::uint32_t>(profile.evs.size());
  if ((mask & MRC_CTL_EV_PROFILE_MIN_ACTIVE) != 0) attr.ev_min_active = profile.min_active;
  if ((mask & MRC_CTL_EV_PROFILE_EVENT_MASK) != 0)
    attr.ev_event_mask = static_cast<int>(profile.event_mask);
  if ((mask & MRC_CTL_EV_PROFILE_VENDOR_CFG) != 0)
    std::fill(std::begin(attr.vendor_cfg), std::end(attr.vendor_cfg), std::uint8_t{0});
  return 0;
}

}  // namespace mrc::api
