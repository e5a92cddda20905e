// Asynchronous events of verbs programs, and names of things.
#include <array>
#include <cerrno>
#include <cstddef>

#include "api/guard.h"
#include "api/qp_registry.h"
#include "api/raw_value.h"
#include "api/verbs_real.h"
#include "api/verbs_types.h"

namespace mrc::api {
namespace {

// `names` in the order of the enumeration; anything else is unknown.
template <std::size_t N>
const char* name_of(const std::array<const char*, N>& names, int value) {
  return value >= 0 && static_cast<std::size_t>(value) < N
             ? names.at(static_cast<std::size_t>(value))
             : "unknown";
}

// The object an event is about; none for those of ports and devices.
struct Subject {
  ibv_context* context = nullptr;
  ibv_qp* qp = nullptr;
  ibv_cq* cq = nullptr;
};

Subject subject_of(const ibv_async_event& event) {
  switch (raw_value(event.event_type)) {
    case IBV_EVENT_CQ_ERR:
      return {.context = event.element.cq->context, .cq = event.element.cq};
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return {.context = event.element.qp->context, .qp = event.element.qp};
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return {.context = event.element.srq->context};
    default:
      return {};
  }
}

int get_event(VerbsContext& context, ibv_async_event* out) {
  if (out == nullptr) return EINVAL;
  use_verbs_events(context);
  OwnedEvent taken;
  const int error = context.async->next(events_block(context), taken);
  if (error != 0) return error;
  *out = {};
  out->event_type = event_type_of(taken.event.kind);
  if (taken.event.qp != nullptr) {
    out->element.qp = static_cast<ibv_qp*>(taken.owner);
    log_failure(*context.device, taken.event.qp->number());
  } else if (taken.event.cq != nullptr) {
    out->element.cq = static_cast<ibv_cq*>(taken.owner);
  } else {
    out->element.port_num = static_cast<int>(taken.event.port);
  }
  return 0;
}

}  // namespace

ibv_event_type event_type_of(nic::AsyncKind kind) {
  switch (kind) {
    case nic::AsyncKind::kQpFatal:
      return IBV_EVENT_QP_FATAL;
    case nic::AsyncKind::kCqError:
      return IBV_EVENT_CQ_ERR;
    case nic::AsyncKind::kPortActive:
      return IBV_EVENT_PORT_ACTIVE;
    case nic::AsyncKind::kPortError:
      return IBV_EVENT_PORT_ERR;
    case nic::AsyncKind::kDeviceFatal:
      return IBV_EVENT_DEVICE_FATAL;
  }
  return IBV_EVENT_DEVICE_FATAL;
}

}  // namespace mrc::api

using mrc::api::forward_or;
using mrc::api::name_of;
using mrc::api::our_context;
using mrc::api::raw_value;

MRC_API_EXPORT int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  mrc::api::VerbsContext* ours = our_context(context);
  if (ours == nullptr)
    return forward_or(-1, context, MRC_REAL(ibv_get_async_event), context, event);
  return mrc::api::minus_one_on_error([&] { return mrc::api::get_event(*ours, event); });
}

MRC_API_EXPORT void ibv_ack_async_event(ibv_async_event* event) {
  if (event == nullptr) return;
  const mrc::api::Subject subject = mrc::api::subject_of(*event);
  if (subject.context == nullptr) return;
  if (mrc::api::VerbsContext* ours = our_context(subject.context)) {
    mrc::nic::AsyncEvent acknowledged;
    if (subject.qp != nullptr)
      acknowledged.qp = &reinterpret_cast<mrc::api::VerbsQp*>(subject.qp)->pair.nic();
    if (subject.cq != nullptr)
      acknowledged.cq = reinterpret_cast<mrc::api::VerbsCq*>(subject.cq)->nic.get();
    ours->async->acknowledge(acknowledged);
  } else if (const auto real = MRC_REAL(ibv_ack_async_event); real != nullptr) {
    real(event);
  }
}

MRC_API_EXPORT const char* ibv_event_type_str(ibv_event_type event) {
  static constexpr std::array<const char*, 20> kNames{"completion queue failed",
                                                      "queue pair failed",
                                                      "request of a queue pair was invalid",
                                                      "access of a queue pair was refused",
                                                      "connection established by data",
                                                      "send queue drained",
                                                      "path migrated",
                                                      "path migration failed",
                                                      "device failed",
                                                      "port active",
                                                      "port down",
                                                      "LID changed",
                                                      "partition keys changed",
                                                      "subnet manager changed",
                                                      "shared receive queue failed",
                                                      "shared receive queue is low",
                                                      "last work request of a queue pair done",
                                                      "client must register again",
                                                      "GID table changed",
                                                      "work queue failed"};
  return name_of(kNames, raw_value(event));
}

MRC_API_EXPORT const char* ibv_wc_status_str(ibv_wc_status status) {
  static constexpr std::array<const char*, 24> kNames{
      "success",
      "local: message too long for its buffers",
      "local: queue pair operation failed",
      "local: end-to-end context failed",
      "local: buffer outside registered memory",
      "flushed because the queue pair failed",
      "memory window bind failed",
      "bad response",
      "local: access refused",
      "remote: request invalid",
      "remote: access refused",
      "remote: operation failed",
      "retries exceeded, the peer does not answer",
      "retries exceeded, the peer has no receive posted",
      "local: domain violation",
      "remote: invalid datagram request",
      "aborted by the peer",
      "invalid end-to-end context",
      "invalid end-to-end context state",
      "fatal",
      "no response in time",
      "general failure",
      "tag matching failed",
      "rendezvous incomplete"};
  return name_of(kNames, raw_value(status));
}

MRC_API_EXPORT const char* ibv_port_state_str(ibv_port_state state) {
  static constexpr std::array<const char*, 6> kNames{
      "no change", "PORT_DOWN", "PORT_INIT", "PORT_ARMED", "PORT_ACTIVE", "PORT_ACTIVE_DEFER"};
  return name_of(kNames, raw_value(state));
}

MRC_API_EXPORT const char* ibv_node_type_str(ibv_node_type type) {
  static constexpr std::array<const char*, 8> kNames{"unknown",   "channel adapter", "switch",
                                                     "router",    "iWARP card",      "usNIC",
                                                     "usNIC UDP", "unspecified"};
  return name_of(kNames, raw_value(type));
}
