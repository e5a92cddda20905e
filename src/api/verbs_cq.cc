// Completion channels and completion queues of verbs programs.
#include <cerrno>
#include <memory>

#include "api/guard.h"
#include "api/refusal.h"
#include "api/verbs_ops.h"
#include "api/verbs_real.h"
#include "api/verbs_types.h"
#include "api/work.h"

namespace mrc::api {
namespace {

VerbsCq* our_cq(ibv_cq* cq) {
  return cq != nullptr && our_context(cq->context) != nullptr ? reinterpret_cast<VerbsCq*>(cq)
                                                              : nullptr;
}

VerbsChannel* our_channel(ibv_comp_channel* channel) {
  const bool ours = channel != nullptr && our_context(channel->context) != nullptr;
  return ours ? reinterpret_cast<VerbsChannel*>(channel) : nullptr;
}

int create_channel(VerbsContext& context, ibv_comp_channel*& out) {
  auto made = std::make_unique<VerbsChannel>();
  const int error = nic::CompletionChannel::create(made->nic);
  if (error != 0) return error;
  made->channel = {.context = &context.vctx.context, .fd = made->nic->descriptor(), .refcnt = 0};
  hold(context);
  out = &made.release()->channel;
  return 0;
}

int create_cq(VerbsContext& context, int depth, void* cq_context, ibv_comp_channel* channel,
              int vector, ibv_cq*& out) {
  if (depth < 1 || static_cast<unsigned>(depth) > context.device->limits().max_cq_depth)
    return refused(EINVAL, "cqe", depth, "from 1 to the device's max_cqe");
  if (vector < 0 || vector >= context.vctx.context.num_comp_vectors)
    return refused(EINVAL, "comp_vector", vector, "from 0 to below num_comp_vectors");
  if (channel != nullptr && channel->context != &context.vctx.context) return EINVAL;
  auto made = std::make_unique<VerbsCq>();
  std::shared_ptr<nic::CompletionChannel> nic_channel;
  if (VerbsChannel* ours = our_channel(channel)) {
    nic_channel = ours->nic;
    made->counted_by_channel = ChildCount(ours->children);
  }
  const int error = context.device->create_completion_queue(static_cast<unsigned>(depth), &made->cq,
                                                            std::move(nic_channel), made->nic);
  if (error != 0) return error;
  ibv_cq& cq = made->cq;
  cq.context = &context.vctx.context;
  cq.channel = channel;
  cq.cq_context = cq_context;
  cq.cqe = static_cast<int>(made->nic->depth());
  pthread_mutex_init(&cq.mutex, nullptr);
  pthread_cond_init(&cq.cond, nullptr);
  context.async->add(made->nic.get(), &cq);
  use_verbs_events(context);
  hold(context);
  out = &made.release()->cq;
  return 0;
}

}  // namespace

int poll_cq(ibv_cq* cq, int count, ibv_wc* out) {
  return poll_completions(nic_of(cq->context), *reinterpret_cast<VerbsCq*>(cq)->nic, count, out);
}

int request_notify(ibv_cq* cq, int solicited_only) {
  return reinterpret_cast<VerbsCq*>(cq)->nic->request_notification(solicited_only != 0);
}

}  // namespace mrc::api

using mrc::api::forward_or;
using mrc::api::our_channel;
using mrc::api::our_context;
using mrc::api::our_cq;

MRC_API_EXPORT ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  mrc::api::VerbsContext* ours = our_context(context);
  if (ours == nullptr) {
    return forward_or<ibv_comp_channel*>(nullptr, context, MRC_REAL(ibv_create_comp_channel),
                                         context);
  }
  ibv_comp_channel* made = nullptr;
  return mrc::api::null_on_error(made, [&] { return mrc::api::create_channel(*ours, made); });
}

MRC_API_EXPORT int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  mrc::api::VerbsChannel* ours = our_channel(channel);
  if (ours == nullptr)
    return forward_or(EINVAL, channel, MRC_REAL(ibv_destroy_comp_channel), channel);
  if (ours->children != 0) return EBUSY;
  mrc::api::VerbsContext& context = *our_context(channel->context);
  delete ours;
  mrc::api::release(context);
  return 0;
}

MRC_API_EXPORT ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* cq_context,
                                     ibv_comp_channel* channel, int comp_vector) {
  mrc::api::VerbsContext* ours = our_context(context);
  if (ours == nullptr) {
    return forward_or<ibv_cq*>(nullptr, context, MRC_REAL(ibv_create_cq), context, cqe, cq_context,
                               channel, comp_vector);
  }
  ibv_cq* made = nullptr;
  return mrc::api::null_on_error(made, [&] {
    return mrc::api::create_cq(*ours, cqe, cq_context, channel, comp_vector, made);
  });
}

MRC_API_EXPORT int ibv_resize_cq(ibv_cq* cq, int cqe) {
  mrc::api::VerbsCq* ours = our_cq(cq);
  if (ours == nullptr) return forward_or(EINVAL, cq, MRC_REAL(ibv_resize_cq), cq, cqe);
  const unsigned limit = mrc::api::nic_of(cq->context).limits().max_cq_depth;
  if (cqe < 1 || static_cast<unsigned>(cqe) > limit)
    return mrc::api::refused(EINVAL, "cqe", cqe, "from 1 to the device's max_cqe");
  const int error = ours->nic->resize(static_cast<unsigned>(cqe));
  if (error == 0) cq->cqe = static_cast<int>(ours->nic->depth());
  return error;
}

MRC_API_EXPORT int ibv_destroy_cq(ibv_cq* cq) {
  mrc::api::VerbsCq* ours = our_cq(cq);
  if (ours == nullptr) return forward_or(EINVAL, cq, MRC_REAL(ibv_destroy_cq), cq);
  if (ours->children != 0) return EBUSY;
  mrc::api::VerbsContext& context = *our_context(cq->context);
  context.async->remove(ours->nic.get());
  ours->nic->wait_acknowledged();
  pthread_cond_destroy(&cq->cond);
  pthread_mutex_destroy(&cq->mutex);
  delete ours;
  mrc::api::release(context);
  return 0;
}

MRC_API_EXPORT int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  mrc::api::VerbsChannel* ours = our_channel(channel);
  if (ours == nullptr)
    return forward_or(-1, channel, MRC_REAL(ibv_get_cq_event), channel, cq, cq_context);
  return mrc::api::minus_one_on_error([&] {
    if (cq == nullptr || cq_context == nullptr) return EINVAL;
    void* cookie = nullptr;
    const int error = ours->nic->wait(cookie);
    if (error != 0) return error;
    *cq = static_cast<ibv_cq*>(cookie);
    *cq_context = (*cq)->cq_context;
    return 0;
  });
}

MRC_API_EXPORT void ibv_ack_cq_events(ibv_cq* cq, unsigned nevents) {
  if (mrc::api::VerbsCq* ours = our_cq(cq)) {
    ours->nic->acknowledge(nevents);
  } else if (const auto real = MRC_REAL(ibv_ack_cq_events); cq != nullptr && real != nullptr) {
    real(cq, nevents);
  }
}
