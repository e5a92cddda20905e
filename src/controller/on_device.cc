#include "controller/on_device.h"

#include <fmt/core.h>

#include "os/errors.h"

namespace mrc::controller {
namespace {

bool is_online(const Session& session, Kind kind, std::uint64_t id) {
  return state_of(session, kind, id) == MRC_CTL_PROFILE_ONLINE;
}

FormatSpec read_format(const Session& session, std::uint64_t id) {
  std::vector<mrc_ctl_ev_fmt_field> fields(8 * MRC_CTL_EV_MAX_BYTES);
  mrc_ctl_ev_fmt_profile_attr attr{};
  attr.ev_fmt_op.op = MRC_CTL_EV_FMT_OP_QUERY_FIELDS;
  attr.ev_fmt_op.fmt_fields = fields.data();
  attr.ev_fmt_op.fmt_field_count = static_cast<int>(fields.size());
  session.check(
      os::errno_of(mrc_ctl_query_ev_fmt_profile(
          session.context(), id, &attr, MRC_CTL_EV_FMT_PROFILE_MODE | MRC_CTL_EV_FMT_PROFILE_OP)),
      fmt::format("EV format {}", id));
  FormatSpec spec{.id = id, .mode = attr.ev_fmt_mode};
  for (int i = 0; i < attr.ev_fmt_op.fmt_field_count; ++i)
    spec.widths.push_back(fields[static_cast<std::size_t>(i)].width);
  return spec;
}

EvSpec read_ev_profile(const Session& session, std::uint64_t id) {
  mrc_ctl_ev_profile_attr attr{};
  session.check(os::errno_of(mrc_ctl_query_ev_profile(
                    session.context(), id, &attr,
                    MRC_CTL_EV_PROFILE_MODE | MRC_CTL_EV_PROFILE_FMT_ID | MRC_CTL_EV_PROFILE_COUNT |
                        MRC_CTL_EV_PROFILE_MIN_ACTIVE | MRC_CTL_EV_PROFILE_EVENT_MASK)),
                fmt::format("EV profile {}", id));
  EvSpec spec{.id = id,
              .mode = attr.ev_mode,
              .format = attr.ev_fmt_profile_id,
              .count = attr.ev_count,
              .min_active = attr.ev_min_active,
              .event_mask = attr.ev_event_mask,
              .fields = read_fields(session, id)};
  if (spec.mode != MRC_CTL_EV_MODE_EXP) return spec;
  for (const mrc_ctl_ev_op_entry& entry : read_evs(session, id))
    spec.evs.push_back(entry.ev);
  return spec;
}

CcSpec read_cc_profile(const Session& session, std::uint64_t id) {
  mrc_ctl_cc_profile_attr attr{};
  session.check(os::errno_of(mrc_ctl_query_cc_profile(session.context(), id, &attr,
                                                      MRC_CTL_CC_PROFILE_ALGORITHM |
                                                          MRC_CTL_CC_PROFILE_CONFIG |
                                                          MRC_CTL_CC_PROFILE_VENDOR_CFG)),
                fmt::format("CC profile {}", id));
  CcSpec spec{.id = id, .algorithm = attr.algorithm, .trimming = attr.vendor_cfg[0]};
  if (attr.cc_config != nullptr)
    spec.config = *static_cast<const mrc_ctl_cc_nscc_cfg*>(attr.cc_config);
  return spec;
}

// As many EVs as create() would ask for and the device would make of that; 0: its own choice.
std::uint32_t count_of(const Session& session, const EvSpec& spec) {
  const auto count = spec.count != 0 ? spec.count : static_cast<std::uint32_t>(spec.evs.size());
  if (spec.mode != MRC_CTL_EV_MODE_EXP) return count;
  const std::uint32_t align = session.limits().ev.ev_count_align;
  return (count + align - 1) / align * align;
}

}  // namespace

bool is_on_device(const Session& session, const FormatSpec& spec) {
  return is_online(session, Kind::kFormat, spec.id) && same(read_format(session, spec.id), spec);
}

bool is_on_device(const Session& session, const EvSpec& spec) {
  if (!is_online(session, Kind::kEv, spec.id)) return false;
  const EvSpec found = read_ev_profile(session, spec.id);
  EvSpec made = spec;
  made.has_format = false;  // none reads as 0
  made.count = count_of(session, spec);
  if (made.count == 0) made.count = found.count;
  return same(found, made);
}

bool is_on_device(const Session& session, const CcSpec& spec) {
  if (!is_online(session, Kind::kCc, spec.id)) return false;
  CcSpec made = spec;
  if (made.algorithm == nullptr) made.config = {};  // which the device does not look at then
  made.config.disable_qa = made.config.disable_qa != 0 ? 1 : 0;
  return same(read_cc_profile(session, spec.id), made);
}

}  // namespace mrc::controller
