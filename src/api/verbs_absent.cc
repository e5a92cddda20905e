// Verbs that MRC has no use for: refused for our devices, the real library's for all others.
#include <cerrno>
#include <cstddef>

#include "api/verbs_ops.h"
#include "api/verbs_real.h"
#include "api/verbs_types.h"

namespace mrc::api {
namespace {

// Refused: nothing of that kind exists here.
std::nullptr_t not_offered() {
  errno = EOPNOTSUPP;
  return nullptr;
}

}  // namespace

int post_srq_receive(ibv_srq* /*srq*/, ibv_recv_wr* first, ibv_recv_wr** bad) {
  if (bad != nullptr) *bad = first;
  return EOPNOTSUPP;
}

ibv_mw* alloc_mw(ibv_pd* /*pd*/, ibv_mw_type /*type*/) { return not_offered(); }
int bind_mw(ibv_qp* /*qp*/, ibv_mw* /*mw*/, ibv_mw_bind* /*bind*/) { return EOPNOTSUPP; }
int dealloc_mw(ibv_mw* /*mw*/) { return EOPNOTSUPP; }

}  // namespace mrc::api

using mrc::api::forward_or;
using mrc::api::not_offered;
using mrc::api::our_context;
using mrc::api::our_pd;

MRC_API_EXPORT ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  if (our_pd(pd) != nullptr) return not_offered();
  return forward_or<ibv_srq*>(nullptr, pd, MRC_REAL(ibv_create_srq), pd, attr);
}

MRC_API_EXPORT ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  if (our_pd(pd) != nullptr) return not_offered();
  return forward_or<ibv_ah*>(nullptr, pd, MRC_REAL(ibv_create_ah), pd, attr);
}

MRC_API_EXPORT ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, uint8_t port) {
  if (our_pd(pd) != nullptr) return not_offered();
  return forward_or<ibv_ah*>(nullptr, pd, MRC_REAL(ibv_create_ah_from_wc), pd, wc, grh, port);
}

MRC_API_EXPORT int ibv_init_ah_from_wc(ibv_context* context, uint8_t port, ibv_wc* wc, ibv_grh* grh,
                                       ibv_ah_attr* attr) {
  if (our_context(context) == nullptr) {
    return forward_or(-1, context, MRC_REAL(ibv_init_ah_from_wc), context, port, wc, grh, attr);
  }
  errno = EOPNOTSUPP;
  return -1;
}

MRC_API_EXPORT int ibv_resolve_eth_l2_from_gid(ibv_context* context, ibv_ah_attr* attr,
                                               uint8_t mac[6], uint16_t* vlan) {
  if (our_context(context) != nullptr) return EOPNOTSUPP;
  return forward_or(EINVAL, context, MRC_REAL(ibv_resolve_eth_l2_from_gid), context, attr, mac,
                    vlan);
}

MRC_API_EXPORT ibv_pd* ibv_import_pd(ibv_context* context, uint32_t handle) {
  if (our_context(context) != nullptr) return not_offered();
  return forward_or<ibv_pd*>(nullptr, context, MRC_REAL(ibv_import_pd), context, handle);
}

MRC_API_EXPORT ibv_mr* ibv_import_mr(ibv_pd* pd, uint32_t handle) {
  if (our_pd(pd) != nullptr) return not_offered();
  return forward_or<ibv_mr*>(nullptr, pd, MRC_REAL(ibv_import_mr), pd, handle);
}

MRC_API_EXPORT ibv_dm* ibv_import_dm(ibv_context* context, uint32_t handle) {
  if (our_context(context) != nullptr) return not_offered();
  return forward_or<ibv_dm*>(nullptr, context, MRC_REAL(ibv_import_dm), context, handle);
}

// Our memory is ordinary memory: a child gets its own copy, and nothing needs to be prepared. What
// the real library says holds for its devices, which the program may use beside ours.
MRC_API_EXPORT int ibv_fork_init(void) {
  const auto real = MRC_REAL(ibv_fork_init);
  return real != nullptr ? real() : 0;
}

MRC_API_EXPORT ibv_fork_status ibv_is_fork_initialized(void) {
  const auto real = MRC_REAL(ibv_is_fork_initialized);
  return real != nullptr ? real() : IBV_FORK_UNNEEDED;
}
