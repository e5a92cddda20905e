// What all kinds of profiles have in common, and EV format profiles.
#include <algorithm>
#include <cerrno>

#include "api/ctl.h"
#include "api/refusal.h"

namespace mrc::api {
namespace {

using node::EvFormatProfile;
using node::NodeSnapshot;
using node::ProfileState;

constexpr std::uint32_t kFormatBits =
    MRC_CTL_EV_FMT_PROFILE_STATE | MRC_CTL_EV_FMT_PROFILE_CUR_STATE | MRC_CTL_EV_FMT_PROFILE_MODE |
    MRC_CTL_EV_FMT_PROFILE_OP | static_cast<std::uint32_t>(MRC_CTL_EV_FMT_VENDOR_CFG);

bool kind_of_mode(int mode, wire::EvKind& out) {
  switch (mode) {
    case MRC_CTL_EV_FMT_MODE_STEV:
      out = wire::EvKind::kStructured;
      return true;
    case MRC_CTL_EV_FMT_MODE_SRV6:
      out = wire::EvKind::kSrv6;
      return true;
    case MRC_CTL_EV_FMT_MODE_UDP:
      out = wire::EvKind::kUdpPort;
      return true;
    default:
      return false;
  }
}

mrc_ctl_ev_fmt_mode mode_of_kind(wire::EvKind kind) {
  switch (kind) {
    case wire::EvKind::kStructured:
      return MRC_CTL_EV_FMT_MODE_STEV;
    case wire::EvKind::kUdpPort:
      return MRC_CTL_EV_FMT_MODE_UDP;
    case wire::EvKind::kSrv6:
    case wire::EvKind::kSrv6Segment:
      break;
  }
  return MRC_CTL_EV_FMT_MODE_SRV6;
}

// An SRv6 format that is wider than an address has a routing-header segment as well.
wire::EvKind with_segment(wire::EvKind kind, std::span<const std::uint8_t> widths) {
  if (kind != wire::EvKind::kSrv6 && kind != wire::EvKind::kSrv6Segment) return kind;
  unsigned total = 0;
  for (const std::uint8_t width : widths)
    total += width;
  return total > wire::ev_width_bits(wire::EvKind::kSrv6) ? wire::EvKind::kSrv6Segment
                                                          : wire::EvKind::kSrv6;
}

int set_widths(EvFormatProfile& format, std::vector<std::uint8_t> widths) {
  const wire::EvKind kind = with_segment(format.kind, widths);
  const Status checked = wire::check_ev_format({kind, widths});
  if (!checked.ok()) return checked.code() == ErrorCode::kTooLong ? E2BIG : EINVAL;
  format.kind = kind;
  format.field_widths = std::move(widths);
  return 0;
}

int set_fields(const mrc_ctl_ev_fmt_profile_attr& attr, EvFormatProfile& format) {
  const auto& op = attr.ev_fmt_op;
  if (op.fmt_fields == nullptr || op.fmt_field_count < 1) return EINVAL;
  if (static_cast<std::size_t>(op.fmt_field_count) > node::kMaxFormatFields) return E2BIG;
  std::vector<std::uint8_t> widths;
  widths.reserve(static_cast<std::size_t>(op.fmt_field_count));
  for (int i = 0; i < op.fmt_field_count; ++i)
    widths.push_back(op.fmt_fields[i].width);
  const int error = set_widths(format, std::move(widths));
  if (error == 0) return 0;
  return refused(error, "fmt_field_count", op.fmt_field_count,
                 "widths of 1 bit and more, together no more than packets of that mode carry");
}

int show_fields(const EvFormatProfile& format, mrc_ctl_ev_fmt_profile_attr& attr) {
  auto& op = attr.ev_fmt_op;
  const int error = check_room(format.field_widths.size(), op.fmt_fields, op.fmt_field_count);
  if (error != 0) return error;
  for (std::size_t i = 0; i < format.field_widths.size(); ++i)
    op.fmt_fields[i].width = format.field_widths[i];
  return 0;
}

bool used_online(const NodeSnapshot& state, std::uint64_t format_id) {
  return std::any_of(state.ev_profiles.begin(), state.ev_profiles.end(), [&](const auto& entry) {
    return entry.second.state == ProfileState::kOnline && entry.second.format_id == format_id &&
           entry.second.mode != node::EvMode::kAuto;
  });
}

// May change until the profile is online; to say it again does no harm. Fields that the new mode
// cannot carry are to be given anew.
int take_mode(const mrc_ctl_ev_fmt_profile_attr& attr, EvFormatProfile& format) {
  wire::EvKind kind{};
  if (!kind_of_mode(raw(attr.ev_fmt_mode), kind))
    return refused(EINVAL, "ev_fmt_mode", raw(attr.ev_fmt_mode), "one of STEV, SRV6 and UDP");
  const bool is_new = format.state == ProfileState::kInit;
  if (!is_new && attr.ev_fmt_mode == mode_of_kind(format.kind)) return 0;
  if (format.state == ProfileState::kOnline)
    return refused(EINVAL, "ev_fmt_mode", raw(attr.ev_fmt_mode), "ONLINE it does not change");
  format.kind = kind;
  if (set_widths(format, format.field_widths) != 0) format.field_widths.clear();
  return 0;
}

int take_format_step(const NodeSnapshot& state, std::uint64_t id, ProfileStep step,
                     EvFormatProfile& format) {
  const bool is_full = state.formats.size() >= node::kMaxFormatProfiles;
  if (step == ProfileStep::kCreate && is_full) return E2BIG;
  if (step == ProfileStep::kGoOnline && format.field_widths.empty())
    return refused(EINVAL, "it has no fields, and needs them to be ONLINE");
  if (step == ProfileStep::kGoOffline && used_online(state, id)) return EBUSY;
  format.state = state_after(step, format.state);
  return 0;
}

}  // namespace

int find_step(const ProfileStepRequest& request, ProfileStep& out) {
  out = ProfileStep::kStay;
  if (request.has_current && request.current != raw(to_api(request.from)))
    return refused(EINVAL, "cur_profile_state", request.current, "it is in another state");
  if (!request.has_state) return 0;
  const bool to_init = request.state == MRC_CTL_PROFILE_INIT;
  const bool to_offline = request.state == MRC_CTL_PROFILE_OFFLINE;
  const bool to_online = request.state == MRC_CTL_PROFILE_ONLINE;
  switch (request.from) {
    case ProfileState::kInit:
      if (to_offline) out = ProfileStep::kCreate;
      break;
    case ProfileState::kOffline:
      if (to_online) out = ProfileStep::kGoOnline;
      if (to_init) out = ProfileStep::kRemove;
      break;
    case ProfileState::kOnline:
      if (to_offline) out = ProfileStep::kGoOffline;
      break;
  }
  if (out != ProfileStep::kStay) return 0;
  return refused(EINVAL, "profile_state", request.state,
                 "no way leads there from the state it is in; INIT, OFFLINE, ONLINE and back");
}

ProfileState state_after(ProfileStep step, ProfileState from) {
  switch (step) {
    case ProfileStep::kCreate:
    case ProfileStep::kGoOffline:
      return ProfileState::kOffline;
    case ProfileStep::kGoOnline:
      return ProfileState::kOnline;
    case ProfileStep::kRemove:
      return ProfileState::kInit;
    case ProfileStep::kStay:
      break;
  }
  return from;
}

mrc_ctl_profile_state to_api(ProfileState state) {
  switch (state) {
    case ProfileState::kInit:
      return MRC_CTL_PROFILE_INIT;
    case ProfileState::kOffline:
      return MRC_CTL_PROFILE_OFFLINE;
    case ProfileState::kOnline:
      break;
  }
  return MRC_CTL_PROFILE_ONLINE;
}

bool mask_within(int mask, std::uint32_t known) {
  return mask != 0 && (static_cast<std::uint32_t>(mask) & ~known) == 0;
}

bool all_zero(std::span<const std::uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

int check_room(std::size_t needed, const void* array, int& count) {
  if (count < 0 || (array == nullptr && count > 0)) return EINVAL;
  const bool fits = needed <= static_cast<std::size_t>(count);
  count = static_cast<int>(needed);
  return fits ? 0 : E2BIG;
}

std::uint32_t ports_to_api(PortMask ports) { return ports.bits() << 1; }

int ports_from_api(std::uint32_t bits, PortMask& out) {
  out = PortMask(bits >> 1);
  const std::uint32_t known = ports_to_api(PortMask::first(kMaxPorts));
  return (bits & ~known) == 0 ? 0 : EINVAL;
}

int modify_format(NodeSnapshot& state, std::uint64_t id, mrc_ctl_ev_fmt_profile_attr& attr,
                  int mask) {
  if (!mask_within(mask, kFormatBits)) return EINVAL;
  if ((mask & MRC_CTL_EV_FMT_VENDOR_CFG) != 0 && !all_zero(attr.vendor_cfg)) return EINVAL;
  const auto known = state.formats.find(id);
  EvFormatProfile format = known == state.formats.end() ? EvFormatProfile{} : known->second;
  ProfileStep step{};
  const int wrong_step = find_step({.from = format.state,
                                    .has_state = (mask & MRC_CTL_EV_FMT_PROFILE_STATE) != 0,
                                    .state = raw(attr.profile_state),
                                    .has_current = (mask & MRC_CTL_EV_FMT_PROFILE_CUR_STATE) != 0,
                                    .current = raw(attr.cur_profile_state)},
                                   step);
  if (wrong_step != 0) return wrong_step;
  const bool has_mode = (mask & MRC_CTL_EV_FMT_PROFILE_MODE) != 0;
  const bool has_op = (mask & MRC_CTL_EV_FMT_PROFILE_OP) != 0;
  const bool asks = has_op && raw(attr.ev_fmt_op.op) == MRC_CTL_EV_FMT_OP_QUERY_FIELDS;
  if (step == ProfileStep::kCreate && !has_mode) return EINVAL;
  if (format.state == ProfileState::kInit && step == ProfileStep::kStay && (has_mode || has_op))
    return EINVAL;
  if (has_mode) {
    if (const int error = take_mode(attr, format); error != 0) return error;
  }
  if (has_op && !asks) {
    if (raw(attr.ev_fmt_op.op) != MRC_CTL_EV_FMT_OP_MODIFY_FIELDS) return EINVAL;
    if (format.state == ProfileState::kOnline || step == ProfileStep::kRemove) return EINVAL;
    if (const int error = set_fields(attr, format); error != 0) return error;
  }
  if (const int error = take_format_step(state, id, step, format); error != 0) return error;
  if (asks) {
    if (const int error = show_fields(format, attr); error != 0) return error;
  }
  if (format.state == ProfileState::kInit) {
    state.formats.erase(id);
  } else {
    state.formats[id] = std::move(format);
  }
  return 0;
}

int query_format(const NodeSnapshot& state, std::uint64_t id, mrc_ctl_ev_fmt_profile_attr& attr,
                 int mask) {
  if (!mask_within(mask, kFormatBits)) return EINVAL;
  const auto known = state.formats.find(id);
  const EvFormatProfile format = known == state.formats.end() ? EvFormatProfile{} : known->second;
  const bool has_mode = (mask & MRC_CTL_EV_FMT_PROFILE_MODE) != 0;
  if (has_mode && format.state == ProfileState::kInit) return EINVAL;
  if ((mask & MRC_CTL_EV_FMT_PROFILE_OP) != 0) {
    if (raw(attr.ev_fmt_op.op) != MRC_CTL_EV_FMT_OP_QUERY_FIELDS) return EINVAL;
    if (const int error = show_fields(format, attr); error != 0) return error;
  }
  if ((mask & MRC_CTL_EV_FMT_PROFILE_STATE) != 0) attr.profile_state = to_api(format.state);
  if ((mask & MRC_CTL_EV_FMT_PROFILE_CUR_STATE) != 0) attr.cur_profile_state = to_api(format.state);
  if (has_mode) attr.ev_fmt_mode = mode_of_kind(format.kind);
  if ((mask & MRC_CTL_EV_FMT_VENDOR_CFG) != 0)
    std::fill(std::begin(attr.vendor_cfg), std::end(attr.vendor_cfg), std::uint8_t{0});
  return 0;
}

}  // namespace mrc::api
