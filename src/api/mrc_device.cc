// Versions, device attributes and contexts.
#include <cerrno>
#include <memory>

#include "api/guard.h"
#include "api/handles.h"
#include "api/verbs_types.h"

namespace mrc::api {
namespace {

constexpr std::uint32_t kMprStep = 1;
// Enumerators are their own bits; version 0 is none.
constexpr std::uint32_t kSpokenVersions = MRC_PROTOCOL_VERSION_1;
constexpr std::uint32_t kCapabilities =
    MRC_DEVICE_CAP_TRIM_NACK | MRC_DEVICE_CAP_DYNAMIC_MPR | MRC_DEVICE_CAP_SVC_TIME;

void fill_attributes(const nic::Device& device, mrc_device_attr& out) {
  const nic::DeviceLimits& limits = device.limits();
  out = {};
  out.mrc_protocol_version = kSpokenVersions;
  out.wimm_attr = {.max_wimm = limits.max_immediates, .max_wimm_dest = limits.max_immediates};
  out.mpr_attr = {.max_mpr = limits.max_window_units, .mpr_resolution = kMprStep};
  out.qp_attr = {.max_qp_hint = kMaxHints};
  out.cap = kCapabilities;
}

// 0 = not stated, and "the latest" is ours.
std::uint32_t version_or_current(std::uint32_t used, std::uint32_t current) {
  return used == 0 || used == MRC_API_VER_LATEST ? current : used;
}

int create_context(ibv_context* verbs, const mrc_context_attr* attr, mrc_context*& out) {
  if (verbs == nullptr) return EINVAL;
  VerbsContext* ours = our_context(verbs);
  if (ours == nullptr) return EOPNOTSUPP;
  const mrc_context_attr stated = attr == nullptr ? mrc_context_attr{} : *attr;
  auto made = std::make_unique<mrc_context>();
  made->api_version = version_or_current(stated.mrc_api_version_used, MRC_API_CURRENT_VERSION);
  made->vendor_api_version =
      version_or_current(stated.mrc_vendor_api_version_used, MRC_VENDOR_API_CURRENT_VERSION);
  if (made->api_version > MRC_API_CURRENT_VERSION) return EINVAL;
  if (made->vendor_api_version > MRC_VENDOR_API_CURRENT_VERSION) return EINVAL;
  made->verbs = ours;
  made->device = ours->device;
  int error = AsyncSource::open(*made->device, made->async);
  if (error == 0) error = watch_events(*ours, made->async->descriptor());
  if (error != 0) return error;
  hold(*ours);
  out = made.release();
  return 0;
}

int query_device(const ibv_context* verbs, const mrc_context* context, mrc_device_attr* attr,
                 int* supported) {
  if (attr == nullptr || supported == nullptr) return EINVAL;
  if (context != nullptr) {
    if (!valid(context)) return EINVAL;
    if (verbs != nullptr && verbs != &context->verbs->vctx.context) return EINVAL;
    verbs = &context->verbs->vctx.context;
  }
  if (verbs == nullptr) return EINVAL;
  const nic::Device* device = device_of(verbs);
  *supported = device != nullptr ? 1 : 0;
  if (device != nullptr) fill_attributes(*device, *attr);
  return 0;
}

int destroy_context(mrc_context* context) {
  if (!valid(context)) return EINVAL;
  if (context->children != 0) return EBUSY;
  VerbsContext& verbs = *context->verbs;
  unwatch_events(verbs, context->async->descriptor());
  delete context;
  release(verbs);
  return 0;
}

}  // namespace
}  // namespace mrc::api

MRC_API_EXPORT int mrc_query_device_ex(ibv_context* context, mrc_context* mcontext,
                                       mrc_device_attr* attr, int* supported) {
  return mrc::api::minus_one_on_error(
      [&] { return mrc::api::query_device(context, mcontext, attr, supported); });
}

MRC_API_EXPORT int mrc_query_device(ibv_context* context, mrc_device_attr* attr, int* supported) {
  return mrc::api::minus_one_on_error(
      [&] { return mrc::api::query_device(context, nullptr, attr, supported); });
}

MRC_API_EXPORT void mrc_query_version(uint32_t* current, uint32_t* last_supported, uint32_t* vendor,
                                      uint32_t* last_supported_vendor) {
  if (current != nullptr) *current = MRC_API_CURRENT_VERSION;
  if (last_supported != nullptr) *last_supported = MRC_API_LAST_SUPPORTED_VERSION;
  if (vendor != nullptr) *vendor = MRC_VENDOR_API_CURRENT_VERSION;
  if (last_supported_vendor != nullptr)
    *last_supported_vendor = MRC_VENDOR_API_LAST_SUPPORTED_VERSION;
}

MRC_API_EXPORT mrc_context* mrc_create_context(ibv_context* vcontext, mrc_context_attr* attr) {
  mrc_context* made = nullptr;
  return mrc::api::null_on_error(made,
                                 [&] { return mrc::api::create_context(vcontext, attr, made); });
}

MRC_API_EXPORT int mrc_destroy_context(mrc_context* context) {
  return mrc::api::minus_one_on_error([&] { return mrc::api::destroy_context(context); });
}
