// Hints: what a program knows about its traffic.
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "api/guard.h"
#include "api/handles.h"
#include "api/hints.h"
#include "api/verbs_types.h"

namespace mrc::api {
namespace {

constexpr int kKnown = MRC_QP_HINT_NUM_QPS_PER_PEER | MRC_QP_HINT_NUM_SEND_PEERS |
                       MRC_QP_HINT_NUM_REMOTE_RECV_PEERS | MRC_QP_HINT_VENDOR_CFG;

int check(const mrc_qp_hint_attr& attr, int mask) {
  if ((mask & MRC_QP_HINT_NUM_QPS_PER_PEER) != 0 && attr.num_qps_per_peer < 0) return EINVAL;
  if ((mask & MRC_QP_HINT_NUM_SEND_PEERS) != 0 && attr.num_send_peers < 0) return EINVAL;
  const bool receivers = (mask & MRC_QP_HINT_NUM_REMOTE_RECV_PEERS) != 0;
  return receivers && attr.num_remote_recv_peers < 0 ? EINVAL : 0;
}

void copy(const mrc_qp_hint_attr& from, int mask, mrc_qp_hint_attr& to) {
  if ((mask & MRC_QP_HINT_NUM_QPS_PER_PEER) != 0) to.num_qps_per_peer = from.num_qps_per_peer;
  if ((mask & MRC_QP_HINT_NUM_SEND_PEERS) != 0) to.num_send_peers = from.num_send_peers;
  if ((mask & MRC_QP_HINT_NUM_REMOTE_RECV_PEERS) != 0)
    to.num_remote_recv_peers = from.num_remote_recv_peers;
  if ((mask & MRC_QP_HINT_VENDOR_CFG) != 0)
    std::memcpy(to.vendor_cfg, from.vendor_cfg, sizeof to.vendor_cfg);
}

int create_hint(mrc_context* context, const mrc_qp_hint_init_attr* init, mrc_qp_hint*& out) {
  if (!valid(context) || init == nullptr) return EINVAL;
  const int refused = check(init->attr, kKnown);
  if (refused != 0) return refused;
  if (context->hints >= kMaxHints) return ENOSPC;
  auto made = std::make_unique<mrc_qp_hint>();
  made->context = context;
  made->counted = ChildCount(context->children);
  made->counted_as_hint = ChildCount(context->hints);
  made->attr = init->attr;
  out = made.release();
  return 0;
}

int check_call(const mrc_qp_hint* hint, const mrc_qp_hint_attr* attr, int mask) {
  return valid(hint) && attr != nullptr && (mask & ~kKnown) == 0 ? 0 : EINVAL;
}

// As NVIDIA's provider takes them from Microsoft's plug-in, in the order of the machine's bytes.
struct VendorRates {
  std::uint8_t version;
  std::uint8_t zero[3];
  std::uint32_t initial;  // rates of a queue pair, 2^20 = the line's
  std::uint32_t min;
  std::uint32_t max;
};
static_assert(sizeof(VendorRates) == 16 && sizeof(mrc_qp_hint_attr::vendor_cfg) >= 16);

std::optional<VendorRates> rates_of(const mrc_qp_hint_attr& attr) {
  VendorRates rates;
  std::memcpy(&rates, attr.vendor_cfg, sizeof rates);
  const bool known = rates.version == 1 && rates.zero[0] + rates.zero[1] + rates.zero[2] == 0;
  return known ? std::optional(rates) : std::nullopt;
}

}  // namespace

core::QpHints hints_of(const mrc_qp_hint_attr& attr) {
  core::QpHints hints{.qps_per_peer = static_cast<std::uint32_t>(attr.num_qps_per_peer),
                      .send_peers = static_cast<std::uint32_t>(attr.num_send_peers),
                      .remote_recv_peers = static_cast<std::uint32_t>(attr.num_remote_recv_peers)};
  if (const std::optional<VendorRates> rates = rates_of(attr)) {
    hints.initial_rate = rates->initial;
    hints.min_rate = rates->min;
    hints.max_rate = rates->max;
  }
  return hints;
}

}  // namespace mrc::api

MRC_API_EXPORT mrc_qp_hint* mrc_create_qp_hint(mrc_context* context,
                                               mrc_qp_hint_init_attr* init_attr) {
  mrc_qp_hint* made = nullptr;
  return mrc::api::null_on_error(made,
                                 [&] { return mrc::api::create_hint(context, init_attr, made); });
}

MRC_API_EXPORT int mrc_destroy_qp_hint(mrc_qp_hint* hint) {
  return mrc::api::minus_one_on_error([&] {
    if (!mrc::api::valid(hint)) return EINVAL;
    if (hint->children != 0) return EBUSY;
    delete hint;
    return 0;
  });
}

MRC_API_EXPORT int mrc_query_qp_hint(mrc_qp_hint* hint, mrc_qp_hint_attr* attr, int mask) {
  return mrc::api::minus_one_on_error([&] {
    const int refused = mrc::api::check_call(hint, attr, mask);
    if (refused != 0) return refused;
    const std::lock_guard lock(hint->mutex);
    mrc::api::copy(hint->attr, mask, *attr);
    return 0;
  });
}

MRC_API_EXPORT int mrc_modify_qp_hint(mrc_qp_hint* hint, mrc_qp_hint_attr* attr, int mask) {
  return mrc::api::minus_one_on_error([&] {
    int refused = mrc::api::check_call(hint, attr, mask);
    if (refused == 0) refused = mrc::api::check(*attr, mask);
    if (refused != 0) return refused;
    const std::lock_guard lock(hint->mutex);
    mrc::api::copy(*attr, mask, hint->attr);
    return 0;
  });
}
