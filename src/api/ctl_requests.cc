// EV events, and requests to other nodes.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <vector>

#include "api/ctl.h"
#include "api/guard.h"
#include "api/handles.h"
#include "api/refusal.h"
#include "api/verbs_types.h"

namespace mrc::api {
namespace {

constexpr int kMaxRequests = 65'536;  // as many as there are ids
constexpr unsigned kMaxDscp = 63;

// --- Events

// The structure of version 1.0.0 ends before `state`. Programs state their version when they create
// a context; some of those built for the current one state a number below any that ever was.
std::size_t event_size(const mrc_context& context) {
  return context.api_version == MRC_API_VER(1, 0, 0) ? offsetof(mrc_ctl_ev_event, state)
                                                     : sizeof(mrc_ctl_ev_event);
}

mrc_ctl_ev_event event_to_api(const node::NodeEvEvent& event) {
  mrc_ctl_ev_event out{};
  out.profile_id = event.profile_id;
  out.ev = to_api(event.ev);
  out.drop_count = event.lost_before;
  out.state = event.state == core::EvState::kAssumedBad ? MRC_CTL_EV_ASSUMED_BAD : MRC_CTL_EV_GOOD;
  return out;
}

int create_event_queue(mrc_context* context, int cqe, void* cq_context, mrc_comp_channel* channel,
                       int comp_vector, mrc_cq*& out) {
  if (!valid(context)) return EINVAL;
  node::NodeState& node = context->device->node();
  if (const int error = node.may_update(); error != 0) return error;
  return create_ev_event_queue(context, cqe, cq_context, channel, comp_vector, out);
}

int poll_events(mrc_cq& cq, int room, mrc_ctl_ev_event* events, int& count) {
  const std::size_t size = event_size(*cq.context);
  auto* at = reinterpret_cast<std::byte*>(events);
  node::NodeEvEvent event;
  const std::lock_guard lock(cq.mutex);
  for (; count < room && cq.ev_events->next(event); ++count, at += size) {
    const mrc_ctl_ev_event shown = event_to_api(event);
    std::memcpy(at, &shown, size);
  }
  return 0;
}

// --- Requests

bool kind_of(const mrc_ctl_ep_req& request, wire::EvKind& out) {
  switch (raw(request.ev_fmt_mode)) {
    case MRC_CTL_EV_FMT_MODE_STEV:
      out = wire::EvKind::kStructured;
      return true;
    case MRC_CTL_EV_FMT_MODE_UDP:
      out = wire::EvKind::kUdpPort;
      return true;
    case MRC_CTL_EV_FMT_MODE_SRV6:
      out = all_zero(std::span(request.req_ev.val).subspan<16>()) ? wire::EvKind::kSrv6
                                                                  : wire::EvKind::kSrv6Segment;
      return true;
    default:
      return false;
  }
}

int make_request(const nic::Device& device, mrc_ctl_ep_op_type op, const mrc_ctl_ep_req& from,
                 nic::EndpointRequest& out) {
  if (!kind_of(from, out.kind))
    return refused(EINVAL, "ev_fmt_mode", raw(from.ev_fmt_mode), "one of STEV, SRV6 and UDP");
  if (from.req_ev.port < 1 || from.req_ev.port > device.config().planes.size())
    return refused(EINVAL, "req_ev.port", from.req_ev.port, "the device has no such port");
  const wire::IpAddress source = address_of(from.sgid);
  out.peer = address_of(from.dgid);
  if (all_zero(out.peer.bytes)) return EINVAL;
  if (!all_zero(from.sgid.raw) && source != device.gid()) return EINVAL;
  if (out.peer.is_v4 != device.gid().is_v4) return EINVAL;
  out.id = from.req_id;
  out.port = PortId{from.req_ev.port};
  std::copy(std::begin(from.req_ev.val), std::end(from.req_ev.val), out.ev.bytes.begin());
  out.port_status = op == MRC_CTL_EP_OP_PORT_STATUS_UPDATE;
  if (out.port_status) {
    return ports_from_api(from.op.port_status_update.port_status, out.ports);
  }
  return 0;
}

struct Batch {
  mrc_ctl_ep_op_type op{};
  std::uint8_t dscp = 0;
  std::span<const mrc_ctl_ep_req> requests;
  DurationNs timeout_ns = 0;
  mrc_ctl_ep_rsp* answers = nullptr;
  int* answer_count = nullptr;
};

int send_and_wait(mrc_context* context, const Batch& batch) {
  nic::Device& device = *context->device;
  if (const int error = device.node().may_update(); error != 0) return error;
  std::vector<nic::EndpointRequest> requests(batch.requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const int error = make_request(device, batch.op, batch.requests[i], requests[i]);
    if (error != 0) return error;
    requests[i].dscp = batch.dscp;
  }
  std::vector<nic::EndpointAnswer> answers;
  const int result = device.endpoint_requests(requests, batch.timeout_ns, answers);
  if (result != 0 && result != ETIMEDOUT) return result;
  const std::size_t count = std::min(requests.size(), answers.size());
  for (std::size_t i = 0; i < count; ++i) {
    const nic::EndpointAnswer& answer = answers[i];
    batch.answers[i] = {
        .req_id = answer.id,
        .port = static_cast<std::uint8_t>(answer.port),
        .rtt = static_cast<unsigned>(std::clamp<DurationNs>(answer.rtt_ns, 0, 0xFFFF'FFFF)),
        .adj_svc_time = answer.service_time_subtracted ? std::uint8_t{1} : std::uint8_t{0}};
  }
  *batch.answer_count = static_cast<int>(count);
  return result;
}

}  // namespace
}  // namespace mrc::api

using mrc::api::valid;

MRC_API_EXPORT mrc_cq* mrc_ctl_create_ev_event_cq(mrc_context* mrc_ctx, int cqe, void* cq_context,
                                                  mrc_comp_channel* channel, int comp_vector) {
  mrc_cq* made = nullptr;
  return mrc::api::null_on_error(made, [&] {
    return mrc::api::create_event_queue(mrc_ctx, cqe, cq_context, channel, comp_vector, made);
  });
}

MRC_API_EXPORT int mrc_ctl_poll_ev_event(mrc_cq* ev_cq, int num_entries,
                                         mrc_ctl_ev_event* ev_event) {
  int count = 0;
  return mrc::api::count_or(
      count,
      [&] {
        if (!valid(ev_cq) || ev_cq->ev_events == nullptr) return EINVAL;
        if (num_entries < 0 || (ev_event == nullptr && num_entries > 0)) return EINVAL;
        const int error = mrc::api::poll_events(*ev_cq, num_entries, ev_event, count);
        // As with any queue: who asked for an event is told, polled or not.
        if (count > 0 && ev_cq->armed.exchange(false)) ev_cq->was_polled.add_one();
        return error;
      },
      [](int error) { return -error; });
}

MRC_API_EXPORT int mrc_ctl_ep_batch_send_wait(mrc_context* mrc_ctx, uint8_t req_tc,
                                              mrc_ctl_ep_op_type op_type, mrc_ctl_ep_req* req,
                                              int num_req, uint32_t rsp_timeout,
                                              mrc_ctl_ep_rsp* rsp, int* num_rsp) {
  const auto send = [&] {
    const int op = mrc::api::raw(op_type);
    if (num_rsp == nullptr) return EINVAL;
    *num_rsp = 0;
    if (!valid(mrc_ctx) || req == nullptr || rsp == nullptr) return EINVAL;
    if (op != MRC_CTL_EP_OP_EV_PROBE && op != MRC_CTL_EP_OP_PORT_STATUS_UPDATE) return EINVAL;
    if (num_req < 1 || num_req > mrc::api::kMaxRequests) return EINVAL;
    if (req_tc > mrc::api::kMaxDscp)
      return mrc::api::refused(EINVAL, "req_tc", req_tc, "a DSCP, 0 to 63");
    return mrc::api::send_and_wait(mrc_ctx, {.op = op_type,
                                             .dscp = req_tc,
                                             .requests = {req, static_cast<std::size_t>(num_req)},
                                             .timeout_ns = rsp_timeout,
                                             .answers = rsp,
                                             .answer_count = num_rsp});
  };
  return mrc::api::minus_one_on_error(send, {ETIMEDOUT, EAGAIN, EINVAL, ENOMEM, ENOTSUP, EPERM});
}
