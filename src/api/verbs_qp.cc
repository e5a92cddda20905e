// Queue pairs of verbs programs: reliable connections, carried by MRC.
#include <cerrno>
#include <memory>

#include "api/guard.h"
#include "api/qp_registry.h"
#include "api/raw_value.h"
#include "api/refusal.h"
#include "api/verbs_ops.h"
#include "api/verbs_real.h"
#include "api/verbs_types.h"
#include "api/work.h"

namespace mrc::api {
namespace {

VerbsQp* our_qp(ibv_qp* qp) {
  return qp != nullptr && our_context(qp->context) != nullptr ? reinterpret_cast<VerbsQp*>(qp)
                                                              : nullptr;
}

int check_init(const VerbsPd& pd, const ibv_qp_init_attr& attr) {
  if (raw_value(attr.qp_type) != IBV_QPT_RC)
    return refused(EOPNOTSUPP, "qp_type", raw_value(attr.qp_type), "IBV_QPT_RC only");
  if (attr.srq != nullptr) return refused(EOPNOTSUPP, "srq: there are no shared receive queues");
  if (attr.send_cq == nullptr || attr.recv_cq == nullptr)
    return refused(EINVAL, "send_cq and recv_cq must both be given");
  if (attr.send_cq->context != pd.pd.context || attr.recv_cq->context != pd.pd.context)
    return refused(EINVAL, "send_cq and recv_cq must be of the context of the pd");
  return 0;
}

void fill_granted(VerbsQp& made, VerbsPd& pd, const nic::QpSetup& setup) {
  made.init.cap = {.max_send_wr = setup.max_sends,
                   .max_recv_wr = setup.max_receives,
                   .max_send_sge = setup.max_send_buffers,
                   .max_recv_sge = setup.max_receive_buffers,
                   .max_inline_data = setup.max_inline};
  ibv_qp& qp = made.qp;
  qp.context = pd.pd.context;
  qp.qp_context = made.init.qp_context;
  qp.pd = &pd.pd;
  qp.send_cq = made.init.send_cq;
  qp.recv_cq = made.init.recv_cq;
  qp.handle = qp.qp_num = made.pair.number();
  qp.state = IBV_QPS_RESET;
  qp.qp_type = IBV_QPT_RC;
  pthread_mutex_init(&qp.mutex, nullptr);
  pthread_cond_init(&qp.cond, nullptr);
}

int create_qp(VerbsPd& pd, ibv_qp_init_attr& attr, ibv_qp*& out) {
  const int refused = check_init(pd, attr);
  if (refused != 0) return refused;
  VerbsContext& context = *our_context(pd.pd.context);
  auto& send_cq = *reinterpret_cast<VerbsCq*>(attr.send_cq);
  auto& receive_cq = *reinterpret_cast<VerbsCq*>(attr.recv_cq);
  auto made = std::make_unique<VerbsQp>();
  nic::QpSetup setup{.domain = pd.domain,
                     .send_cq = send_cq.nic.get(),
                     .receive_cq = receive_cq.nic.get(),
                     .max_sends = attr.cap.max_send_wr,
                     .max_receives = attr.cap.max_recv_wr,
                     .max_send_buffers = attr.cap.max_send_sge,
                     .max_receive_buffers = attr.cap.max_recv_sge,
                     .max_inline = attr.cap.max_inline_data,
                     .signal_all = attr.sq_sig_all != 0,
                     .allow_sends = true,
                     .last_byte_last = true};
  const int error = made->pair.create(context.device, Dialect::kVerbs, setup);
  if (error != 0) return error;
  made->init = attr;
  made->counted_by_domain = ChildCount(pd.children);
  made->counted_by_send_cq = ChildCount(send_cq.children);
  made->counted_by_receive_cq = ChildCount(receive_cq.children);
  add_to_registry(*context.device, made->pair);
  try {
    context.async->add(&made->pair.nic(), &made->qp);
  } catch (const std::bad_alloc&) {
    remove_from_registry(*context.device, made->pair);
    throw;
  }
  use_verbs_events(context);
  fill_granted(*made, pd, setup);
  attr.cap = made->init.cap;
  hold(context);
  out = &made.release()->qp;
  return 0;
}

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  ibv_qp* made = nullptr;
  return null_on_error(made, [&] {
    if (attr == nullptr) return EINVAL;
    return create_qp(*our_pd(pd), *attr, made);
  });
}

}  // namespace

// The newer way to create what ibv_create_qp creates; nothing beyond that is offered.
ibv_qp* create_qp_ex(ibv_context* /*context*/, ibv_qp_init_attr_ex* attr) {
  const bool plain =
      attr != nullptr && attr->comp_mask == IBV_QP_INIT_ATTR_PD && our_pd(attr->pd) != nullptr;
  if (!plain) {
    errno = attr == nullptr || attr->pd == nullptr ? EINVAL : EOPNOTSUPP;
    return nullptr;
  }
  // The extended structure begins like the plain one.
  return create_qp(attr->pd, reinterpret_cast<ibv_qp_init_attr*>(attr));
}

int post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) {
  return post_sends(reinterpret_cast<VerbsQp*>(qp)->pair, first, bad);
}

int post_receive(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) {
  return post_receives(reinterpret_cast<VerbsQp*>(qp)->pair, first, bad);
}

}  // namespace mrc::api

using mrc::api::forward_or;
using mrc::api::our_context;
using mrc::api::our_pd;
using mrc::api::our_qp;

MRC_API_EXPORT ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  if (our_pd(pd) == nullptr)
    return forward_or<ibv_qp*>(nullptr, pd, MRC_REAL(ibv_create_qp), pd, attr);
  return mrc::api::create_qp(pd, attr);
}

MRC_API_EXPORT int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  mrc::api::VerbsQp* ours = our_qp(qp);
  if (ours == nullptr) return forward_or(EINVAL, qp, MRC_REAL(ibv_modify_qp), qp, attr, mask);
  const int error = mrc::api::value_on_error(
      [&] { return ours->pair.modify({.verbs = attr, .verbs_mask = mask}); });
  if (error == 0) qp->state = ours->pair.state();
  return error;
}

MRC_API_EXPORT int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) {
  mrc::api::VerbsQp* ours = our_qp(qp);
  if (ours == nullptr) return forward_or(EINVAL, qp, MRC_REAL(ibv_query_qp), qp, attr, mask, init);
  if (attr == nullptr || init == nullptr) return EINVAL;
  mrc_qp_attr unused{};
  ours->pair.query(*attr, unused);
  *init = ours->init;
  qp->state = attr->qp_state;
  return 0;
}

MRC_API_EXPORT int ibv_destroy_qp(ibv_qp* qp) {
  mrc::api::VerbsQp* ours = our_qp(qp);
  if (ours == nullptr) return forward_or(EINVAL, qp, MRC_REAL(ibv_destroy_qp), qp);
  mrc::api::VerbsContext& context = *our_context(qp->context);
  mrc::api::remove_from_registry(*context.device, ours->pair);
  context.async->remove(&ours->pair.nic());
  ours->pair.destroy();
  pthread_cond_destroy(&qp->cond);
  pthread_mutex_destroy(&qp->mutex);
  delete ours;
  mrc::api::release(context);
  return 0;
}

// None of the extended posting functions is offered; programs then use ibv_post_send.
MRC_API_EXPORT ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  if (our_qp(qp) != nullptr) return nullptr;
  return forward_or<ibv_qp_ex*>(nullptr, qp, MRC_REAL(ibv_qp_to_qp_ex), qp);
}

MRC_API_EXPORT int ibv_query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode op, uint32_t flags) {
  if (our_qp(qp) != nullptr) return 0;
  return forward_or(0, qp, MRC_REAL(ibv_query_qp_data_in_order), qp, op, flags);
}

MRC_API_EXPORT int ibv_query_ece(ibv_qp* qp, ibv_ece* ece) {
  if (our_qp(qp) != nullptr) return EOPNOTSUPP;
  return forward_or(EINVAL, qp, MRC_REAL(ibv_query_ece), qp, ece);
}

MRC_API_EXPORT int ibv_set_ece(ibv_qp* qp, ibv_ece* ece) {
  if (our_qp(qp) != nullptr) return EOPNOTSUPP;
  return forward_or(EINVAL, qp, MRC_REAL(ibv_set_ece), qp, ece);
}

MRC_API_EXPORT int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t lid) {
  if (our_qp(qp) != nullptr) return EOPNOTSUPP;
  return forward_or(EINVAL, qp, MRC_REAL(ibv_attach_mcast), qp, gid, lid);
}

MRC_API_EXPORT int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t lid) {
  if (our_qp(qp) != nullptr) return EOPNOTSUPP;
  return forward_or(EINVAL, qp, MRC_REAL(ibv_detach_mcast), qp, gid, lid);
}
