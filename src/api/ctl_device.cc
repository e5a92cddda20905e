// The controller's view of a device: what it can do, its ports, and the entry points for profiles.
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "api/ctl.h"
#include "api/guard.h"
#include "api/handles.h"
#include "api/refusal.h"
#include "api/verbs_types.h"
#include "os/environment.h"
#include "os/kernel_random.h"

namespace mrc::api {
namespace {

using node::NodeSnapshot;

constexpr std::uint32_t kMaxCountAlign = 64;
// Enumerators are their own bits; version 0 is none.
constexpr std::uint32_t kSpokenVersions = MRC_CTL_PROTOCOL_VERSION_1;
constexpr std::uint32_t kFormats =
    MRC_CTL_EV_FMT_MODE_STEV | MRC_CTL_EV_FMT_MODE_SRV6 | MRC_CTL_EV_FMT_MODE_UDP;
constexpr std::uint32_t kModes = MRC_CTL_EV_MODE_AUTO | MRC_CTL_EV_MODE_EXP | MRC_CTL_EV_MODE_GEN;
constexpr std::uint32_t kOptions =
    MRC_CTL_OPT_CAP_EV_PROFILE_MODIFY_ONLINE | MRC_CTL_OPT_CAP_CC_PROFILE_MODIFY_ONLINE |
    MRC_CTL_OPT_CAP_EV_EVENT | MRC_CTL_OPT_CAP_EV_EVENT_PRECISE_DROP_CNT |
    MRC_CTL_OPT_CAP_EP_OP_EV_PROBE;

// Cards differ in this; a controller can be tried with the value of the card it is meant for.
std::uint32_t count_align() {
  const char* text = os::environment("MRC_EV_COUNT_ALIGN");
  if (text == nullptr) return 1;
  const std::string_view view(text);
  std::uint32_t align = 0;
  const auto parsed = std::from_chars(view.data(), view.data() + view.size(), align);
  const bool whole = parsed.ec == std::errc{} && parsed.ptr == view.data() + view.size();
  return whole && align >= 1 && align <= kMaxCountAlign ? align : 1;
}

CtlLimits limits_of(const nic::Device& device) {
  const auto ports = static_cast<unsigned>(device.config().planes.size());
  const std::uint64_t count = std::uint64_t{ports} * device.config().evs_per_port;
  return {.port_count = ports,
          .ev_count_align = count_align(),
          .auto_ev_count =
              static_cast<std::uint32_t>(std::clamp<std::uint64_t>(count, 1, kMaxEvsPerQp)),
          .seed = os::KernelRandom().next64()};
}

void fill_attributes(nic::Device& device, mrc_ctl_device_attr& out) {
  std::size_t used = 0;
  const std::shared_ptr<const NodeSnapshot> state = device.node().snapshot();
  for (const auto& [id, profile] : state->ev_profiles)
    used += profile.evs.size();
  const CtlLimits limits = limits_of(device);
  out = {};
  out.mrc_ctl_protocol_version = kSpokenVersions;
  out.ev.ev_max_fmt_profiles = node::kMaxFormatProfiles;
  out.ev.ev_max_profiles = node::kMaxEvProfiles;
  out.ev.ev_max_count = node::kMaxNodeEvs;
  out.ev.ev_free_count = static_cast<std::uint32_t>(node::kMaxNodeEvs - used);
  out.ev.ev_max_count_profile = kMaxEvsPerQp;
  out.ev.ev_count_align = limits.ev_count_align;
  out.ev.ev_max_width = 8 * wire::kEvBytes;
  out.ev.ev_fmt_mode_mask = kFormats;
  out.ev.ev_mode_mask = kModes;
  out.ev.ev_op_max_entries = kMaxEvOpEntries;
  out.cc.cc_max_profiles = node::kMaxCcProfiles;
  out.cc.algorithms = cc_algorithms();
  out.phy_port_mask = ports_to_api(PortMask::first(limits.port_count));
  out.opt_attr = kOptions;
}

int query_device(const ibv_context* verbs, const mrc_context* context, mrc_ctl_device_attr* attr,
                 int* supported) {
  if (attr == nullptr || supported == nullptr) return EINVAL;
  if (context != nullptr) {
    if (!valid(context)) return EINVAL;
    if (verbs != nullptr && verbs != &context->verbs->vctx.context) return EINVAL;
    *supported = 1;
    fill_attributes(*context->device, *attr);
    return 0;
  }
  if (verbs == nullptr) return EINVAL;
  nic::Device* device = device_of(verbs);
  *supported = device != nullptr ? 1 : 0;
  if (device != nullptr) fill_attributes(*device, *attr);
  return 0;
}

int check_port(const mrc_context* context, std::uint8_t port, const mrc_ctl_port_attr* attr,
               int mask) {
  if (!valid(context) || attr == nullptr) return EINVAL;
  if (port < 1 || port > context->device->config().planes.size())
    return refused(EINVAL, "port_num", port, "the device has no such port");
  return mask == MRC_CTL_PORT_ADMIN_STATE ? 0 : EINVAL;
}

int modify_port(mrc_context* context, std::uint8_t port, int wanted) {
  if (wanted != MRC_CTL_PORT_ADMIN_DISABLED && wanted != MRC_CTL_PORT_ADMIN_ENABLED)
    return refused(EINVAL, "port_admin_state", wanted, "0 or 1");
  return context->device->node().update([&](NodeSnapshot& state) {
    state.ports_enabled = wanted == MRC_CTL_PORT_ADMIN_ENABLED
                              ? state.ports_enabled.with(PortId{port})
                              : state.ports_enabled.without(PortId{port});
    return 0;
  });
}

int modify_ev(mrc_context* context, std::uint64_t id, mrc_ctl_ev_profile_attr* attr, int mask) {
  if (!valid(context) || attr == nullptr) return EINVAL;
  const CtlLimits limits = limits_of(*context->device);
  node::NodeState& node = context->device->node();
  std::vector<node::NodeState::EvOpinion> opinions;
  if ((mask & MRC_CTL_EV_PROFILE_EV_OP) != 0) opinions = node.ev_opinions(id);
  int batch_error = 0;
  const int error = node.update([&](NodeSnapshot& state) {
    return modify_ev_profile(state, limits, opinions, id, *attr, mask, batch_error);
  });
  return error != 0 ? error : batch_error;
}

int query_ev(mrc_context* context, std::uint64_t id, mrc_ctl_ev_profile_attr* attr, int mask) {
  if (!valid(context) || attr == nullptr) return EINVAL;
  node::NodeState& node = context->device->node();
  std::vector<node::NodeState::EvOpinion> opinions;
  if ((mask & MRC_CTL_EV_PROFILE_EV_OP) != 0) opinions = node.ev_opinions(id);
  return query_ev_profile(*node.snapshot(), opinions, id, *attr, mask);
}

}  // namespace
}  // namespace mrc::api

using mrc::api::minus_one_on_error;
using mrc::api::valid;

MRC_API_EXPORT void mrc_ctl_query_version(uint32_t* current, uint32_t* last_supported,
                                          uint32_t* vendor, uint32_t* last_supported_vendor) {
  if (current != nullptr) *current = MRC_CTL_API_CURRENT_VERSION;
  if (last_supported != nullptr) *last_supported = MRC_CTL_API_LAST_SUPPORTED_VERSION;
  if (vendor != nullptr) *vendor = MRC_CTL_VENDOR_API_CURRENT_VERSION;
  if (last_supported_vendor != nullptr)
    *last_supported_vendor = MRC_CTL_VENDOR_API_LAST_SUPPORTED_VERSION;
}

MRC_API_EXPORT int mrc_ctl_query_device_ex(ibv_context* context, mrc_context* mcontext,
                                           mrc_ctl_device_attr* ctl_attr, int* supported) {
  return minus_one_on_error(
      [&] { return mrc::api::query_device(context, mcontext, ctl_attr, supported); });
}

MRC_API_EXPORT int mrc_ctl_query_device(ibv_context* context, mrc_ctl_device_attr* ctl_attr) {
  return minus_one_on_error([&] {
    int supported = 0;
    const int error = mrc::api::query_device(context, nullptr, ctl_attr, &supported);
    return error == 0 && supported == 0 ? EOPNOTSUPP : error;
  });
}

MRC_API_EXPORT int mrc_ctl_query_port(mrc_context* context, uint8_t port_num,
                                      mrc_ctl_port_attr* attr, int attr_mask) {
  return minus_one_on_error(
      [&] {
        if (const int error = mrc::api::check_port(context, port_num, attr, attr_mask); error != 0)
          return error;
        const bool enabled =
            context->device->node().snapshot()->ports_enabled.contains(mrc::PortId{port_num});
        attr->port_admin_state = enabled ? MRC_CTL_PORT_ADMIN_ENABLED : MRC_CTL_PORT_ADMIN_DISABLED;
        return 0;
      },
      {EINVAL, EPERM});
}

MRC_API_EXPORT int mrc_ctl_modify_port(mrc_context* context, uint8_t port_num,
                                       mrc_ctl_port_attr* attr, int attr_mask) {
  return minus_one_on_error(
      [&] {
        if (const int error = mrc::api::check_port(context, port_num, attr, attr_mask); error != 0)
          return error;
        return mrc::api::modify_port(context, port_num, mrc::api::raw(attr->port_admin_state));
      },
      {EINVAL, EPERM});
}

MRC_API_EXPORT int mrc_ctl_modify_ev_fmt_profile(mrc_context* mrc_ctx, uint64_t ev_fmt_profile_id,
                                                 mrc_ctl_ev_fmt_profile_attr* attr, int attr_mask) {
  return minus_one_on_error(
      [&] {
        if (!valid(mrc_ctx) || attr == nullptr) return EINVAL;
        return mrc_ctx->device->node().update([&](mrc::node::NodeSnapshot& state) {
          return mrc::api::modify_format(state, ev_fmt_profile_id, *attr, attr_mask);
        });
      },
      {EINVAL, EBUSY, E2BIG, EPERM});
}

MRC_API_EXPORT int mrc_ctl_query_ev_fmt_profile(mrc_context* mrc_ctx, uint64_t ev_fmt_profile_id,
                                                mrc_ctl_ev_fmt_profile_attr* attr, int attr_mask) {
  return minus_one_on_error(
      [&] {
        if (!valid(mrc_ctx) || attr == nullptr) return EINVAL;
        return mrc::api::query_format(*mrc_ctx->device->node().snapshot(), ev_fmt_profile_id, *attr,
                                      attr_mask);
      },
      {EINVAL, E2BIG, EPERM});
}

MRC_API_EXPORT int mrc_ctl_modify_ev_profile(mrc_context* mrc_ctx, uint64_t ev_profile_id,
                                             mrc_ctl_ev_profile_attr* attr, int attr_mask) {
  return minus_one_on_error(
      [&] { return mrc::api::modify_ev(mrc_ctx, ev_profile_id, attr, attr_mask); },
      {EINVAL, EBUSY, E2BIG, ENOENT, EPERM});
}

MRC_API_EXPORT int mrc_ctl_query_ev_profile(mrc_context* mrc_ctx, uint64_t ev_profile_id,
                                            mrc_ctl_ev_profile_attr* attr, int attr_mask) {
  return minus_one_on_error(
      [&] { return mrc::api::query_ev(mrc_ctx, ev_profile_id, attr, attr_mask); },
      {EINVAL, E2BIG, ENOENT, EPERM});
}

MRC_API_EXPORT int mrc_ctl_modify_cc_profile(mrc_context* mrc_ctx, uint64_t cc_profile_id,
                                             mrc_ctl_cc_profile_attr* attr, int attr_mask) {
  return minus_one_on_error(
      [&] {
        if (!valid(mrc_ctx) || attr == nullptr) return EINVAL;
        return mrc_ctx->device->node().update([&](mrc::node::NodeSnapshot& state) {
          return mrc::api::modify_cc_profile(state, cc_profile_id, *attr, attr_mask);
        });
      },
      {EINVAL, EBUSY, EPERM});
}

MRC_API_EXPORT int mrc_ctl_query_cc_profile(mrc_context* mrc_ctx, uint64_t cc_profile_id,
                                            mrc_ctl_cc_profile_attr* attr, int attr_mask) {
  // The attributes only hold a pointer; it stays good until this thread asks again.
  static thread_local mrc_ctl_cc_nscc_cfg config;
  return minus_one_on_error(
      [&] {
        if (!valid(mrc_ctx) || attr == nullptr) return EINVAL;
        return mrc::api::query_cc_profile(*mrc_ctx->device->node().snapshot(), cc_profile_id, *attr,
                                          attr_mask, config);
      },
      {EINVAL, EPERM});
}
