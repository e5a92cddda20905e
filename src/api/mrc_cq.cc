// Completion channels and completion queues.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "api/guard.h"
#include "api/handles.h"
#include "api/refusal.h"
#include "api/verbs_types.h"
#include "api/work.h"
#include "os/host_bug.h"

namespace mrc::api {
namespace {

// Which source of a channel is ready: the queue's address, and in its lowest bit whether it is
// `was_polled`. None stands for work completions.
constexpr std::uint64_t kWasPolled = 1;
std::uint64_t source_of(const mrc_cq* cq) { return reinterpret_cast<std::uintptr_t>(cq); }

// A source that nobody has asked to be told about stays in the set without any event.
int watch_source(const mrc_comp_channel& channel, int operation, int descriptor, unsigned events,
                 std::uint64_t source) {
  epoll_event event{.events = events, .data = {.u64 = source}};
  return epoll_ctl(channel.epoll_fd, operation, descriptor, &event) == 0 ? 0 : errno;
}

int create_channel(mrc_context* context, mrc_comp_channel*& out) {
  auto made = std::make_unique<mrc_comp_channel>();
  made->context = context;
  made->counted = ChildCount(context->children);
  const int error = nic::CompletionChannel::create(made->work);
  if (error != 0) return error;
  // Blocking is done at epoll_fd, where all sources meet.
  const int flags = fcntl(made->work->descriptor(), F_GETFL);
  if (flags < 0 || fcntl(made->work->descriptor(), F_SETFL, flags | O_NONBLOCK) < 0) return errno;
  made->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  if (made->epoll_fd < 0) return errno;
  const int watching =
      watch_source(*made, EPOLL_CTL_ADD, made->work->descriptor(), EPOLLIN, source_of(nullptr));
  if (watching != 0) return watching;
  out = made.release();
  return 0;
}

int check_cq_arguments(const mrc_context* context, int cqe, const mrc_comp_channel* channel,
                       int vector) {
  if (!valid(context)) return refused(EINVAL, "the context is none of ours");
  if (cqe < 1 || static_cast<unsigned>(cqe) > context->device->limits().max_cq_depth)
    return refused(EINVAL, "cqe", cqe, "from 1 to the device's max_cqe");
  if (vector < 0 || vector >= context->verbs->vctx.context.num_comp_vectors)
    return refused(EINVAL, "comp_vector", vector, "from 0 to below num_comp_vectors");
  if (channel == nullptr) return 0;
  const bool ours =
      valid(channel) && (channel->context == context || MRC_HOST_BUG(kForeignHandles));
  return ours ? 0 : EINVAL;
}

std::unique_ptr<mrc_cq> make_cq(mrc_context* context, void* cq_context, mrc_comp_channel* channel) {
  auto made = std::make_unique<mrc_cq>();
  made->context = context;
  made->counted = ChildCount(context->children);
  made->cq_context = cq_context;
  made->channel = channel;
  if (channel != nullptr) made->counted_by_channel = ChildCount(channel->children);
  return made;
}

int create_cq(mrc_context* context, int cqe, void* cq_context, mrc_comp_channel* channel,
              int vector, mrc_cq*& out) {
  const int refused = check_cq_arguments(context, cqe, channel, vector);
  if (refused != 0) return refused;
  std::unique_ptr<mrc_cq> made = make_cq(context, cq_context, channel);
  const int error = context->device->create_completion_queue(
      static_cast<unsigned>(cqe), made.get(), channel == nullptr ? nullptr : channel->work,
      made->work);
  if (error != 0) return error;
  context->async->add(made->work.get(), made.get());
  out = made.release();
  return 0;
}

// One event if there is one; EAGAIN otherwise. A completion queue that goes is out of the set
// before it waits for its events, and the lock keeps it from going between the two steps here.
int take_event(mrc_comp_channel& channel, mrc_cq*& out) {
  const std::lock_guard lock(channel.mutex);
  for (;;) {
    void* cookie = nullptr;
    const int error = channel.work->wait(cookie);
    if (error == 0) {
      out = static_cast<mrc_cq*>(cookie);
      return 0;
    }
    if (error != EAGAIN) return error;
    epoll_event ready{};
    const int count = epoll_wait(channel.epoll_fd, &ready, 1, 0);
    if (count < 0) return errno;
    if (count == 0) return EAGAIN;
    if (ready.data.u64 == source_of(nullptr)) continue;
    const bool polled = (ready.data.u64 & kWasPolled) != 0;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it was one
    auto* const cq = reinterpret_cast<mrc_cq*>(ready.data.u64 & ~kWasPolled);
    // One event for each request, whoever of the two finds it.
    if (polled ? cq->was_polled.take_one() != 0 : !cq->armed.exchange(false)) continue;
    out = cq;
    const std::lock_guard cq_lock(out->mutex);
    ++out->unacknowledged;
    return 0;
  }
}

int get_cq_event(mrc_comp_channel* channel, mrc_cq** cq, void** cq_context) {
  if (!valid(channel) || cq == nullptr || cq_context == nullptr) return EINVAL;
  for (;;) {
    mrc_cq* taken = nullptr;
    const int error = take_event(*channel, taken);
    if (error == 0) {
      *cq = taken;
      *cq_context = taken->cq_context;
      return 0;
    }
    const bool blocks = (fcntl(channel->epoll_fd, F_GETFL) & O_NONBLOCK) == 0;
    if (error != EAGAIN || !blocks) return error;
    pollfd wanted{.fd = channel->epoll_fd, .events = POLLIN, .revents = 0};
    if (poll(&wanted, 1, -1) < 0) return errno;
  }
}

void end_ev_events(mrc_cq& cq) {
  if (cq.channel != nullptr) {
    const std::lock_guard lock(cq.channel->mutex);
    for (const int source : {cq.ev_events->descriptor(), cq.was_polled.fd()})
      static_cast<void>(watch_source(*cq.channel, EPOLL_CTL_DEL, source, 0, source_of(nullptr)));
  }
  std::unique_lock lock(cq.mutex);
  cq.acknowledged.wait(lock, [&] { return cq.unacknowledged == 0; });
}

int join_channel(mrc_cq& cq) {
  const int opened = cq.was_polled.open();
  if (opened != 0) return opened;
  if (fcntl(cq.was_polled.fd(), F_SETFL, O_NONBLOCK) < 0) return errno;
  const int error = watch_source(*cq.channel, EPOLL_CTL_ADD, cq.ev_events->descriptor(),
                                 EPOLLONESHOT, source_of(&cq));
  if (error != 0) return error;
  return watch_source(*cq.channel, EPOLL_CTL_ADD, cq.was_polled.fd(), EPOLLIN,
                      source_of(&cq) | kWasPolled);
}

int destroy_cq(mrc_cq* cq) {
  if (!valid(cq)) return EINVAL;
  if (cq->children != 0) return EBUSY;
  if (cq->work != nullptr) {
    cq->context->async->remove(cq->work.get());
    cq->work->wait_acknowledged();
  } else {
    end_ev_events(*cq);
  }
  delete cq;
  return 0;
}

int request_notification(mrc_cq* cq, bool solicited_only) {
  if (!valid(cq)) return EINVAL;
  if (cq->work != nullptr) return cq->work->request_notification(solicited_only);
  if (cq->channel == nullptr) return 0;
  cq->armed = true;
  return watch_source(*cq->channel, EPOLL_CTL_MOD, cq->ev_events->descriptor(),
                      EPOLLIN | EPOLLONESHOT, source_of(cq));
}

}  // namespace

int create_ev_event_queue(mrc_context* context, int cqe, void* cq_context,
                          mrc_comp_channel* channel, int comp_vector, mrc_cq*& out) {
  const int refused = check_cq_arguments(context, cqe, channel, comp_vector);
  if (refused != 0) return refused;
  std::unique_ptr<mrc_cq> made = make_cq(context, cq_context, channel);
  made->ev_events = context->device->node().listen(static_cast<std::size_t>(cqe));
  if (made->ev_events == nullptr) return errno;
  const int error = channel == nullptr ? 0 : join_channel(*made);
  if (error != 0) return error;
  out = made.release();
  return 0;
}

}  // namespace mrc::api

using mrc::api::valid;

mrc_comp_channel::~mrc_comp_channel() {
  if (epoll_fd >= 0) close(epoll_fd);
}

MRC_API_EXPORT int mrc_create_comp_channel(mrc_context* context, mrc_comp_channel** channel) {
  return mrc::api::value_on_error([&] {
    if (!valid(context) || channel == nullptr) return EINVAL;
    return mrc::api::create_channel(context, *channel);
  });
}

MRC_API_EXPORT int mrc_get_comp_channel_fd(mrc_comp_channel* channel, int* fd) {
  return mrc::api::minus_one_on_error([&] {
    if (!valid(channel) || fd == nullptr) return EINVAL;
    *fd = channel->epoll_fd;
    return 0;
  });
}

MRC_API_EXPORT int mrc_destroy_comp_channel(mrc_comp_channel* channel) {
  return mrc::api::value_on_error([&] {
    if (!valid(channel)) return EINVAL;
    if (channel->children != 0) return EBUSY;
    delete channel;
    return 0;
  });
}

MRC_API_EXPORT mrc_cq* mrc_create_cq(mrc_context* context, int cqe, void* cq_context,
                                     mrc_comp_channel* channel, int comp_vector) {
  mrc_cq* made = nullptr;
  return mrc::api::null_on_error(made, [&] {
    return mrc::api::create_cq(context, cqe, cq_context, channel, comp_vector, made);
  });
}

MRC_API_EXPORT int mrc_poll_cq(mrc_cq* cq, int num_entries, ibv_wc* wc) {
  int count = 0;
  return mrc::api::count_or(
      count,
      [&] {
        if (!valid(cq) || cq->work == nullptr) return EINVAL;
        count = mrc::api::poll_completions(*cq->context->device, *cq->work, num_entries, wc);
        return count < 0 ? -count : 0;
      },
      [](int) { return -1; });
}

MRC_API_EXPORT int mrc_destroy_cq(mrc_cq* cq) {
  return mrc::api::value_on_error([&] { return mrc::api::destroy_cq(cq); });
}

MRC_API_EXPORT int mrc_req_notify_cq(mrc_cq* cq, int solicited_only) {
  return mrc::api::value_on_error(
      [&] { return mrc::api::request_notification(cq, solicited_only != 0); });
}

MRC_API_EXPORT int mrc_get_cq_event(mrc_comp_channel* channel, mrc_cq** cq, void** cq_context) {
  return mrc::api::minus_one_on_error(
      [&] { return mrc::api::get_cq_event(channel, cq, cq_context); });
}

MRC_API_EXPORT void mrc_ack_cq_events(mrc_cq* cq, unsigned nevents) {
  if (!valid(cq)) return;
  if (cq->work != nullptr) {
    cq->work->acknowledge(nevents);
    return;
  }
  const std::lock_guard lock(cq->mutex);
  cq->unacknowledged -= std::min(nevents, cq->unacknowledged);
  cq->acknowledged.notify_all();
}
