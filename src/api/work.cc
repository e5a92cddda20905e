#include "api/work.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "api/plane_news.h"
#include "api/qp_registry.h"
#include "api/raw_value.h"
#include "api/refusal.h"

namespace mrc::api {
namespace {

// Small, because a program that posts or polls one by one pays for the whole batch.
constexpr std::size_t kBatch = 4;
constexpr std::size_t kPollBatch = 8;
// As many buffers as a whole batch may have together; a single request never has more.
constexpr std::size_t kBatchBuffers = 16;

constexpr unsigned kKnownSendFlags =
    IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;

// Requests of one call, ready for the NIC.
template <typename Work>
struct Batch {
  std::array<Work, kBatch> work;
  std::array<nic::Buffer, kBatchBuffers> buffers;
  std::size_t size = 0;
  std::size_t buffers_used = 0;

  bool full(int wanted) const {
    return size == kBatch || buffers_used + static_cast<std::size_t>(wanted) > kBatchBuffers;
  }

  std::span<const nic::Buffer> add_buffers(const ibv_sge* list, int count) {
    const std::size_t first = buffers_used;
    for (int i = 0; i < count; ++i) {
      const ibv_sge& sge = list[i];
      buffers[buffers_used++] = {// NOLINTNEXTLINE(performance-no-int-to-ptr)
                                 .address = reinterpret_cast<const std::byte*>(sge.addr),
                                 .length = sge.length,
                                 .key = sge.lkey};
    }
    return {buffers.data() + first, static_cast<std::size_t>(count)};
  }
};

int check_list(const ibv_sge* list, int count) {
  if (count < 0 || static_cast<std::size_t>(count) > kBatchBuffers)
    return refused(EINVAL, "num_sge", count, "at most 16, and what the queue pair was created for");
  if (count > 0 && list == nullptr) return refused(EINVAL, "num_sge", count, "sg_list is missing");
  return 0;
}

int kind_of(int opcode, Dialect dialect, nic::SendKind& out) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
      out = nic::SendKind::kWrite;
      return 0;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      out = nic::SendKind::kWriteImmediate;
      return 0;
    case IBV_WR_SEND:
      out = nic::SendKind::kSend;
      if (dialect == Dialect::kVerbs) return 0;
      return refused(EOPNOTSUPP, "opcode", opcode, "mrc.h has writes only; verbs have sends");
    case IBV_WR_SEND_WITH_IMM:
      out = nic::SendKind::kSendImmediate;
      if (dialect == Dialect::kVerbs) return 0;
      return refused(EOPNOTSUPP, "opcode", opcode, "mrc.h has writes only; verbs have sends");
    case IBV_WR_RDMA_READ:
      return refused(EOPNOTSUPP, "opcode", opcode,
                     "MRC has no READ; let the other side write, or ask it to");
    default:
      return refused(EOPNOTSUPP, "opcode", opcode,
                     "MRC has writes and, for verbs, sends: no atomics, no others");
  }
}

int append(Batch<nic::SendWork>& batch, const ibv_send_wr& request, Dialect dialect) {
  nic::SendKind kind{};
  int error = kind_of(raw_value(request.opcode), dialect, kind);
  if (error == 0) error = check_list(request.sg_list, request.num_sge);
  if (error != 0) return error;
  if ((request.send_flags & ~kKnownSendFlags) != 0)
    return refused(EINVAL, "send_flags", request.send_flags,
                   "FENCE, SIGNALED, SOLICITED and INLINE are known");
  batch.work[batch.size++] = {.id = request.wr_id,
                              .kind = kind,
                              .buffers = batch.add_buffers(request.sg_list, request.num_sge),
                              .inline_data = (request.send_flags & IBV_SEND_INLINE) != 0,
                              .signaled = (request.send_flags & IBV_SEND_SIGNALED) != 0,
                              .solicited = (request.send_flags & IBV_SEND_SOLICITED) != 0,
                              .remote_address = request.wr.rdma.remote_addr,
                              .remote_key = request.wr.rdma.rkey,
                              .immediate = ntohl(request.imm_data)};
  return 0;
}

int append(Batch<nic::ReceiveWork>& batch, const ibv_recv_wr& request, Dialect /*dialect*/) {
  const int error = check_list(request.sg_list, request.num_sge);
  if (error != 0) return error;
  batch.work[batch.size++] = {.id = request.wr_id,
                              .buffers = batch.add_buffers(request.sg_list, request.num_sge)};
  return 0;
}

// The NIC has refused it: what it looks at.
template <typename Request>
void explain_request(const Request& request) {
  refused(EINVAL, "wr_id", static_cast<std::int64_t>(request.wr_id),
          "the request has more buffers than the queue pair was created for, a buffer outside the "
          "region of its lkey, more inline data than agreed, or the queue pair is not connected");
}

// `post` hands a batch to the NIC and says how many requests were taken.
template <typename Work, typename Request, typename Post>
int post_all(Dialect dialect, Request* first, Request** bad, const Post& post) {
  Request* next = first;
  while (next != nullptr) {
    Batch<Work> batch;
    Request* start = next;
    int problem = 0;
    while (next != nullptr && problem == 0 && (batch.size == 0 || !batch.full(next->num_sge))) {
      problem = append(batch, *next, dialect);
      if (problem == 0) next = next->next;
    }
    std::size_t posted = 0;
    const std::span<const Work> work(batch.work.data(), batch.size);
    const int error = work.empty() ? 0 : post(work, posted);
    if (error != 0) {
      for (std::size_t i = 0; i < posted; ++i)
        start = start->next;
      *bad = start;
      if (error == EINVAL) explain_request(*start);
      return error;
    }
    if (problem != 0) {
      *bad = next;
      return problem;
    }
  }
  return 0;
}

ibv_wc_opcode opcode_of(const nic::WorkCompletion& done) {
  const bool write =
      done.kind == nic::SendKind::kWrite || done.kind == nic::SendKind::kWriteImmediate;
  if (done.receive) return write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
  return write ? IBV_WC_RDMA_WRITE : IBV_WC_SEND;
}

// Flushed work is a consequence.
bool is_failure(core::CompletionStatus status) {
  return status != core::CompletionStatus::kSuccess && status != core::CompletionStatus::kFlushed;
}

void fill(ibv_wc& out, const nic::WorkCompletion& done) {
  std::memset(&out, 0, sizeof out);
  out.wr_id = done.id;
  out.status = wc_status(done.status);
  out.opcode = opcode_of(done);
  out.vendor_err = static_cast<std::uint32_t>(done.status);
  out.byte_len = done.length;
  out.qp_num = static_cast<std::uint32_t>(done.qp);
  if (done.has_immediate) {
    out.imm_data = htonl(done.immediate);
    out.wc_flags = IBV_WC_WITH_IMM;
  }
}

}  // namespace

ibv_wc_status wc_status(core::CompletionStatus status) {
  using enum core::CompletionStatus;
  switch (status) {
    case kSuccess:
      return IBV_WC_SUCCESS;
    case kFlushed:
      return IBV_WC_WR_FLUSH_ERR;
    case kRetryExceeded:
      return IBV_WC_RETRY_EXC_ERR;
    case kRemoteAccess:
      return IBV_WC_REM_ACCESS_ERR;
    case kRemoteInvalidRequest:
      return IBV_WC_REM_INV_REQ_ERR;
    case kRemoteOperation:
    case kImmediateLimit:
      return IBV_WC_REM_OP_ERR;
    case kReceiveMissing:
      return IBV_WC_RNR_RETRY_EXC_ERR;
    case kLocalProtection:
      return IBV_WC_LOC_PROT_ERR;
  }
  return IBV_WC_GENERAL_ERR;
}

int post_sends(QueuePair& pair, ibv_send_wr* first, ibv_send_wr** bad) {
  return post_all<nic::SendWork>(pair.dialect(), first, bad,
                                 [&](std::span<const nic::SendWork> work, std::size_t& posted) {
                                   return pair.nic().post_sends(work, posted);
                                 });
}

int post_receives(QueuePair& pair, ibv_recv_wr* first, ibv_recv_wr** bad) {
  return post_all<nic::ReceiveWork>(
      pair.dialect(), first, bad, [&](std::span<const nic::ReceiveWork> work, std::size_t& posted) {
        return pair.nic().post_receives(work, posted);
      });
}

int poll_completions(nic::Device& device, nic::CompletionQueue& queue, int count, ibv_wc* out) {
  if (count < 0 || (count > 0 && out == nullptr)) return -EINVAL;
  if (device.planes().watches()) tell_plane_news(device);
  int given = 0;
  while (given < count) {
    std::array<nic::WorkCompletion, kPollBatch> done;
    const std::size_t wanted = std::min(done.size(), static_cast<std::size_t>(count - given));
    const int got = queue.poll({done.data(), wanted});
    if (got < 0) return given > 0 ? given : got;
    for (int i = 0; i < got; ++i) {
      const nic::WorkCompletion& one = done.at(static_cast<std::size_t>(i));
      fill(out[given++], one);
      if (is_failure(one.status)) log_failure(device, one.qp);
    }
    if (got < static_cast<int>(wanted)) break;
  }
  return given;
}

}  // namespace mrc::api
