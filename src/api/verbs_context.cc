// Opening a device, and what there is to know about it.
#include "api/verbs_ops.h"

#include <fcntl.h>
#include <net/if.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>
#include <utility>

#include "api/guard.h"
#include "api/log.h"
#include "api/verbs_real.h"
#include "api/verbs_types.h"
#include "os/notice.h"

namespace mrc::api {
namespace {

// A verbs context is not polled by hardware; a program may spread its queues over these as it
// likes.
constexpr int kCompletionVectors = 64;

int set_watched(VerbsContext& context, bool wanted) {
  if (wanted == context.watched) return 0;
  epoll_event event{.events = EPOLLIN, .data = {}};
  const int operation = wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
  if (epoll_ctl(context.epoll_fd, operation, context.async->descriptor(), &event) != 0)
    return errno;
  context.watched = wanted;
  return 0;
}

void fill_tables(VerbsContext& context, VerbsDevice& device) {
  verbs_context& vctx = context.vctx;
  vctx.sz = sizeof vctx;
  vctx.query_port = query_port_sized;
  vctx.query_device_ex = query_device_ex;
  vctx.create_qp_ex = create_qp_ex;
  ibv_context& plain = vctx.context;
  plain.device = &device.device;
  plain.ops.poll_cq = poll_cq;
  plain.ops.req_notify_cq = request_notify;
  plain.ops.post_send = post_send;
  plain.ops.post_recv = post_receive;
  plain.ops.post_srq_recv = post_srq_receive;
  plain.ops.alloc_mw = alloc_mw;
  plain.ops.bind_mw = bind_mw;
  plain.ops.dealloc_mw = dealloc_mw;
  plain.cmd_fd = -1;
  plain.async_fd = context.epoll_fd;
  plain.num_comp_vectors = kCompletionVectors;
  pthread_mutex_init(&plain.mutex, nullptr);
  // How verbs.h tells that there is a verbs_context before an ibv_context.
  plain.abi_compat = reinterpret_cast<void*>(UINTPTR_MAX);
}

int open_device(VerbsDevice& device, VerbsContext*& out) {
  auto context = std::make_unique<VerbsContext>();
  std::string error;
  os::set_notice_sink([](const char* line) { log(LogLevel::kWarn, "%s", line); });
  context->device = nic::Device::open(device.config, error);
  if (context->device == nullptr) {
    const int reason = errno;
    log(LogLevel::kError, "%s: %s", device.config.name.c_str(), error.c_str());
    return reason != 0 ? reason : EIO;
  }
  const int failed = AsyncSource::open(*context->device, context->async);
  if (failed != 0) return failed;
  context->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  if (context->epoll_fd < 0) return errno;
  const int watching = set_watched(*context, true);
  if (watching != 0) return watching;
  fill_tables(*context, device);
  out = context.release();
  return 0;
}

}  // namespace

VerbsContext::~VerbsContext() {
  if (epoll_fd >= 0) close(epoll_fd);
}

VerbsContext* our_context(const ibv_context* context) {
  if (context == nullptr || our_device(context->device) == nullptr) return nullptr;
  const auto* bytes = reinterpret_cast<const std::byte*>(context);
  const auto* vctx = bytes - offsetof(verbs_context, context);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
  return const_cast<VerbsContext*>(reinterpret_cast<const VerbsContext*>(vctx));
}

nic::Device* device_of(const ibv_context* context) {
  const VerbsContext* ours = our_context(context);
  return ours == nullptr ? nullptr : ours->device.get();
}

void hold(VerbsContext& context) { context.references.fetch_add(1, std::memory_order_relaxed); }

void release(VerbsContext& context) {
  if (context.references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  pthread_mutex_destroy(&context.vctx.context.mutex);
  delete &context;
}

int watch_events(VerbsContext& context, int descriptor) {
  const std::lock_guard lock(context.mutex);
  epoll_event event{.events = EPOLLIN, .data = {}};
  if (epoll_ctl(context.epoll_fd, EPOLL_CTL_ADD, descriptor, &event) != 0) return errno;
  ++context.mrc_contexts;
  return context.verbs_used ? 0 : set_watched(context, false);
}

void unwatch_events(VerbsContext& context, int descriptor) {
  const std::lock_guard lock(context.mutex);
  epoll_ctl(context.epoll_fd, EPOLL_CTL_DEL, descriptor, nullptr);
  if (--context.mrc_contexts == 0) static_cast<void>(set_watched(context, true));
}

void use_verbs_events(VerbsContext& context) {
  const std::lock_guard lock(context.mutex);
  context.verbs_used = true;
  static_cast<void>(set_watched(context, true));
}

bool events_block(const VerbsContext& context) {
  return (fcntl(context.epoll_fd, F_GETFL) & O_NONBLOCK) == 0;
}

}  // namespace mrc::api

using mrc::api::forward_or;
using mrc::api::our_context;

MRC_API_EXPORT ibv_context* ibv_open_device(ibv_device* device) {
  if (mrc::api::VerbsDevice* ours = mrc::api::our_device(device)) {
    mrc::api::VerbsContext* context = nullptr;
    errno = 0;
    mrc::api::null_on_error(context, [&] { return mrc::api::open_device(*ours, context); });
    return context == nullptr ? nullptr : &context->vctx.context;
  }
  return forward_or<ibv_context*>(nullptr, device, MRC_REAL(ibv_open_device), device);
}

MRC_API_EXPORT int ibv_close_device(ibv_context* context) {
  if (mrc::api::VerbsContext* ours = our_context(context)) {
    mrc::api::release(*ours);
    return 0;
  }
  return forward_or(EINVAL, context, MRC_REAL(ibv_close_device), context);
}
