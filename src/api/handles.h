// What stands behind the opaque pointers of mrc.h.
//
// Every handle begins with a word that names its kind and is wiped when the handle ends, so that a
// null, foreign or stale pointer is refused with EINVAL as far as memory can still be read. Handles
// count their children; a parent with children is refused with EBUSY.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "api/async_source.h"
#include "api/queue_pair.h"
#include "mrc.h"
#include "nic/device.h"
#include "os/event_descriptor.h"

namespace mrc::api {

struct VerbsContext;

inline constexpr unsigned kMaxHints = 65'536;  // of one context

enum class Magic : std::uint64_t {
  kContext = 0x6d72'6343'6f6e'7465,
  kChannel = 0x6d72'6343'6861'6e6e,
  kCq = 0x6d72'6343'7175'6575,
  kHint = 0x6d72'6348'696e'7473,
  kQp = 0x6d72'6351'7061'6972,
  kGone = 0xdead'6d72'6300'0000,
};

class HandleHead {
 public:
  explicit HandleHead(Magic magic) : magic_(magic) {}
  ~HandleHead() { magic_.store(Magic::kGone, std::memory_order_relaxed); }
  HandleHead(const HandleHead&) = delete;
  HandleHead& operator=(const HandleHead&) = delete;
  bool is(Magic magic) const { return magic_.load(std::memory_order_relaxed) == magic; }

 private:
  std::atomic<Magic> magic_;
};

// Counts one child of a handle as long as it lives.
class ChildCount {
 public:
  ChildCount() = default;
  explicit ChildCount(std::atomic<unsigned>& count) : count_(&count) { ++*count_; }
  ~ChildCount() {
    if (count_ != nullptr) --*count_;
  }
  ChildCount(ChildCount&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  ChildCount& operator=(ChildCount&& other) noexcept {
    std::swap(count_, other.count_);
    return *this;
  }

 private:
  std::atomic<unsigned>* count_ = nullptr;
};

}  // namespace mrc::api

// The names are those of the public header.
// NOLINTBEGIN(readability-identifier-naming)

struct mrc_context {
  mrc::api::HandleHead head{mrc::api::Magic::kContext};
  mrc::api::VerbsContext* verbs = nullptr;  // kept open as long as this lives
  std::shared_ptr<mrc::nic::Device> device;
  // MRC_API_VER_USED of the program; never 0, a program that says nothing has the current one.
  std::uint32_t api_version = 0;
  std::uint32_t vendor_api_version = 0;
  std::unique_ptr<mrc::api::AsyncSource> async;
  std::atomic<unsigned> children{0};
  std::atomic<unsigned> hints{0};
};

// Work completions come through the NIC's channel. Other sources, such as EV events, join by their
// descriptors: `epoll_fd` is what the program sees and polls.
struct mrc_comp_channel {
  mrc::api::HandleHead head{mrc::api::Magic::kChannel};
  mrc_context* context = nullptr;
  mrc::api::ChildCount counted;
  std::shared_ptr<mrc::nic::CompletionChannel> work;
  int epoll_fd = -1;
  std::mutex mutex;  // one taker at a time, and none while a completion queue leaves
  std::atomic<unsigned> children{0};
  ~mrc_comp_channel();
};

// Either `work` or `ev_events`, never both.
struct mrc_cq {
  mrc::api::HandleHead head{mrc::api::Magic::kCq};
  mrc_context* context = nullptr;
  mrc::api::ChildCount counted;
  void* cq_context = nullptr;
  mrc_comp_channel* channel = nullptr;
  mrc::api::ChildCount counted_by_channel;
  std::unique_ptr<mrc::nic::CompletionQueue> work;
  std::atomic<unsigned> children{0};

  // EV events. Those taken from the channel and not yet acknowledged keep the queue alive.
  std::unique_ptr<mrc::node::NodeState::Listener> ev_events;
  std::atomic<bool> armed{false};       // an event for the channel was asked for
  mrc::os::EventDescriptor was_polled;  // that event, if the program polled before it took it
  std::mutex mutex;
  std::condition_variable acknowledged;
  unsigned unacknowledged = 0;
};

struct mrc_qp_hint {
  mrc::api::HandleHead head{mrc::api::Magic::kHint};
  mrc_context* context = nullptr;
  mrc::api::ChildCount counted;
  mrc::api::ChildCount counted_as_hint;
  std::mutex mutex;
  mrc_qp_hint_attr attr{};
  std::atomic<unsigned> children{0};  // queue pairs
};

struct mrc_qp {
  mrc::api::HandleHead head{mrc::api::Magic::kQp};
  mrc_context* context = nullptr;
  mrc::api::ChildCount counted;
  mrc_qp_init_attr init{};  // with what was granted
  mrc::api::ChildCount counted_by_send_cq;
  mrc::api::ChildCount counted_by_receive_cq;
  mrc::api::ChildCount counted_by_domain;
  std::mutex mutex;  // one change at a time
  mrc::api::ChildCount counted_by_hint;
  mrc::api::QueuePair pair;
};

// NOLINTEND(readability-identifier-naming)

namespace mrc::api {

inline bool valid(const mrc_context* handle) {
  return handle != nullptr && handle->head.is(Magic::kContext);
}
inline bool valid(const mrc_comp_channel* handle) {
  return handle != nullptr && handle->head.is(Magic::kChannel);
}
inline bool valid(const mrc_cq* handle) { return handle != nullptr && handle->head.is(Magic::kCq); }
inline bool valid(const mrc_qp_hint* handle) {
  return handle != nullptr && handle->head.is(Magic::kHint);
}
inline bool valid(const mrc_qp* handle) { return handle != nullptr && handle->head.is(Magic::kQp); }

// The device behind a verbs context, or none when it is not one of ours.
nic::Device* device_of(const ibv_context* context);

// For mrc_ctl_create_ev_event_cq: with all argument checks but the caller's rights. EINVAL, ENOMEM.
int create_ev_event_queue(mrc_context* context, int cqe, void* cq_context,
                          mrc_comp_channel* channel, int comp_vector, mrc_cq*& out);

}  // namespace mrc::api
