// Queue pairs, and asynchronous events.
#include <cerrno>
#include <memory>
#include <utility>

#include "api/guard.h"
#include "api/handles.h"
#include "api/hints.h"
#include "api/qp_registry.h"
#include "api/raw_value.h"
#include "api/refusal.h"
#include "api/verbs_types.h"
#include "api/work.h"

namespace mrc::api {
namespace {

constexpr std::uint64_t kKnownOperations =
    IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
constexpr int kKnownVerbsMask = (IBV_QP_RATE_LIMIT << 1) - 1;
constexpr int kKnownMrcMask = ((MRC_QP_CAP << 1) - 1) | MRC_QP_VENDOR_CFG;

int check_init(const mrc_context* context, const mrc_qp_init_attr* attr) {
  if (!valid(context) || attr == nullptr)
    return refused(EINVAL, "the context is none of ours, or attr is missing");
  for (const mrc_cq* cq : {attr->send_cq, attr->recv_cq}) {
    if (!valid(cq) || cq->context != context || cq->work == nullptr)
      return refused(EINVAL, "send_cq and recv_cq must both be completion queues of the context");
  }
  if (our_pd(attr->pd) == nullptr || attr->pd->context != &context->verbs->vctx.context)
    return refused(EINVAL, "pd must be a protection domain of the context");
  if ((attr->send_ops_flags & ~kKnownOperations) != 0)
    return refused(EOPNOTSUPP, "send_ops_flags", static_cast<std::int64_t>(attr->send_ops_flags),
                   "MRC has RDMA_WRITE and RDMA_WRITE_WITH_IMM");
  const int version = raw_value(attr->protocol_version);
  if (version >= MRC_PROTOCOL_VERSION_0 && version <= MRC_PROTOCOL_VERSION_1) return 0;
  return refused(EINVAL, "protocol_version", version, "0 and 1 are known");
}

int create_qp(mrc_context* context, mrc_qp_init_attr* attr, mrc_qp*& out) {
  const int problem = check_init(context, attr);
  if (problem != 0) return problem;
  VerbsPd& pd = *our_pd(attr->pd);
  auto made = std::make_unique<mrc_qp>();
  nic::QpSetup setup{.domain = pd.domain,
                     .send_cq = attr->send_cq->work.get(),
                     .receive_cq = attr->recv_cq->work.get(),
                     .max_sends = attr->cap.max_send_wr,
                     .max_receives = attr->cap.max_recv_wr,
                     .max_send_buffers = attr->cap.max_send_sge,
                     .max_receive_buffers = attr->cap.max_recv_sge,
                     .max_inline = attr->cap.max_inline_data,
                     .signal_all = attr->sq_sig_all != 0};
  const int error = made->pair.create(context->device, Dialect::kMrc, setup);
  if (error != 0) return error;
  made->context = context;
  made->counted = ChildCount(context->children);
  made->counted_by_send_cq = ChildCount(attr->send_cq->children);
  made->counted_by_receive_cq = ChildCount(attr->recv_cq->children);
  made->counted_by_domain = ChildCount(pd.children);
  made->init = *attr;
  made->init.cap = {.max_send_wr = setup.max_sends,
                    .max_recv_wr = setup.max_receives,
                    .max_send_sge = setup.max_send_buffers,
                    .max_recv_sge = setup.max_receive_buffers,
                    .max_inline_data = setup.max_inline};
  add_to_registry(*context->device, made->pair);
  try {
    context->async->add(&made->pair.nic(), made.get());
  } catch (const std::bad_alloc&) {
    remove_from_registry(*context->device, made->pair);
    throw;
  }
  attr->cap = made->init.cap;
  out = made.release();
  return 0;
}

int read_hint(const mrc_qp& qp, mrc_qp_hint* hint, core::QpHints& out) {
  if (hint == nullptr) return 0;
  if (!valid(hint) || hint->context != qp.context) return EINVAL;
  const std::lock_guard lock(hint->mutex);
  out = hints_of(hint->attr);
  return 0;
}

int modify_qp(mrc_qp* qp, const QpChange& wanted) {
  if (!valid(qp) || (wanted.verbs_mask & ~kKnownVerbsMask) != 0) return EINVAL;
  if ((wanted.mrc_mask & ~kKnownMrcMask) != 0) return EINVAL;
  if (wanted.mrc_mask != 0 && wanted.mrc == nullptr) return EINVAL;
  QpChange change = wanted;
  ChildCount user;
  const bool with_hint = (wanted.mrc_mask & MRC_QP_HINT) != 0;
  const std::lock_guard lock(qp->mutex);
  if (with_hint) {
    const int problem = read_hint(*qp, wanted.mrc->qp_hint, change.hints);
    if (problem != 0) return problem;
    if (wanted.mrc->qp_hint != nullptr) user = ChildCount(wanted.mrc->qp_hint->children);
  }
  const int error = qp->pair.modify(change);
  if (error != 0) return error;
  const bool left = qp->pair.state() == IBV_QPS_RESET;
  if (with_hint || left) qp->counted_by_hint = std::move(user);
  return 0;
}

int query_qp(mrc_qp* qp, ibv_qp_attr* verbs, int verbs_mask, mrc_qp_attr* mrc, int mrc_mask,
             mrc_qp_init_attr* init) {
  if (!valid(qp) || (verbs_mask & ~kKnownVerbsMask) != 0) return EINVAL;
  if ((mrc_mask & ~kKnownMrcMask) != 0) return EINVAL;
  if ((verbs_mask != 0 && verbs == nullptr) || (mrc_mask != 0 && mrc == nullptr)) return EINVAL;
  ibv_qp_attr verbs_now{};
  mrc_qp_attr mrc_now{};
  qp->pair.query(verbs_now, mrc_now);
  if (verbs_mask != 0) *verbs = verbs_now;
  if (mrc_mask != 0) *mrc = mrc_now;
  if (init != nullptr) *init = qp->init;
  return 0;
}

int get_event(mrc_context* context, mrc_async_event* out) {
  if (!valid(context) || out == nullptr) return EINVAL;
  OwnedEvent taken;
  const int error = context->async->next(events_block(*context->verbs), taken);
  if (error != 0) return error;
  *out = {};
  out->event_type = event_type_of(taken.event.kind);
  if (taken.event.qp != nullptr) {
    out->element.qp = static_cast<mrc_qp*>(taken.owner);
    log_failure(*context->device, taken.event.qp->number());
  } else if (taken.event.cq != nullptr) {
    out->element.cq = static_cast<mrc_cq*>(taken.owner);
  } else {
    out->element.port_num = static_cast<int>(taken.event.port);
  }
  return 0;
}

}  // namespace
}  // namespace mrc::api

using mrc::api::raw_value;
using mrc::api::valid;

MRC_API_EXPORT mrc_qp* mrc_create_qp(mrc_context* context, mrc_qp_init_attr* attr) {
  mrc_qp* made = nullptr;
  return mrc::api::null_on_error(made, [&] { return mrc::api::create_qp(context, attr, made); });
}

MRC_API_EXPORT int mrc_destroy_qp(mrc_qp* qp) {
  return mrc::api::value_on_error([&] {
    if (!valid(qp)) return EINVAL;
    mrc::api::remove_from_registry(*qp->context->device, qp->pair);
    qp->context->async->remove(&qp->pair.nic());
    qp->pair.destroy();
    delete qp;
    return 0;
  });
}

MRC_API_EXPORT int mrc_query_qp(mrc_qp* qp, ibv_qp_attr* vattr, int vattr_mask,
                                mrc_qp_attr* mrc_attr, int mrc_attr_mask,
                                mrc_qp_init_attr* init_attr) {
  return mrc::api::value_on_error([&] {
    return mrc::api::query_qp(qp, vattr, vattr_mask, mrc_attr, mrc_attr_mask, init_attr);
  });
}

MRC_API_EXPORT int mrc_modify_qp(mrc_qp* qp, ibv_qp_attr* vattr, int vattr_mask,
                                 mrc_qp_attr* mrc_attr, int mrc_attr_mask) {
  return mrc::api::value_on_error([&] {
    return mrc::api::modify_qp(qp, {.verbs = vattr,
                                    .verbs_mask = vattr_mask,
                                    .mrc = mrc_attr,
                                    .mrc_mask = mrc_attr_mask,
                                    .hints = {}});
  });
}

MRC_API_EXPORT int mrc_get_qpn(mrc_qp* qp, uint32_t* qpn) {
  return mrc::api::minus_one_on_error([&] {
    if (!valid(qp) || qpn == nullptr) return EINVAL;
    *qpn = qp->pair.number();
    return 0;
  });
}

MRC_API_EXPORT int mrc_post_recv(mrc_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  return mrc::api::minus_one_on_error([&] {
    if (!valid(qp) || wr == nullptr || bad_wr == nullptr) return EINVAL;
    return mrc::api::post_receives(qp->pair, wr, bad_wr);
  });
}

MRC_API_EXPORT int mrc_post_send(mrc_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  return mrc::api::value_on_error([&] {
    if (!valid(qp) || wr == nullptr || bad_wr == nullptr) return EINVAL;
    return mrc::api::post_sends(qp->pair, wr, bad_wr);
  });
}

MRC_API_EXPORT int mrc_get_async_event(mrc_context* context, mrc_async_event* event) {
  return mrc::api::minus_one_on_error([&] { return mrc::api::get_event(context, event); });
}

MRC_API_EXPORT void mrc_ack_async_event(mrc_async_event* event) {
  if (event == nullptr) return;
  mrc::nic::AsyncEvent acknowledged;
  mrc_context* context = nullptr;
  const int type = raw_value(event->event_type);
  if (type == IBV_EVENT_CQ_ERR && valid(event->element.cq)) {
    context = event->element.cq->context;
    acknowledged.cq = event->element.cq->work.get();
  } else if (type == IBV_EVENT_QP_FATAL && valid(event->element.qp)) {
    context = event->element.qp->context;
    acknowledged.qp = &event->element.qp->pair.nic();
  }
  if (context != nullptr) context->async->acknowledge(acknowledged);
}
