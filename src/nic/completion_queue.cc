#include "nic/completion_queue.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <mutex>
#include <new>

#include "nic/device_impl.h"
#include "nic/engine/engine.h"
#include "nic/queue_pair.h"

namespace mrc::nic {

CompletionQueueImpl::CompletionQueueImpl(std::shared_ptr<DeviceImpl> device, unsigned depth,
                                         void* cookie,
                                         std::shared_ptr<CompletionChannelImpl> channel)
    : device_(std::move(device)), channel_(std::move(channel)), ring_(std::bit_ceil(depth)) {
  seat_.cookie = cookie;
  if (channel_) channel_->attach();
}

CompletionQueueImpl::~CompletionQueueImpl() {
  if (device_->in_child()) return;
  device_->group().async->retire(static_cast<CompletionQueue*>(this));
  if (channel_) channel_->detach(seat_);
}

unsigned CompletionQueueImpl::depth() const {
  const std::lock_guard lock(read_lock_);
  return static_cast<unsigned>(ring_.size());
}

// --- The program's side ---

int CompletionQueueImpl::poll(std::span<WorkCompletion> out) {
  if (device_->in_child()) return -EIO;
  const int taken = take(out);
  if (taken != 0 || out.empty()) return taken;
  drive();
  return take(out);
}

// Only the engines whose completions come here. A device with one engine is driven by every poll:
// programs that watch memory poll whatever queue they have.
void CompletionQueueImpl::drive() {
  const auto& engines = device_->group().engines;
  if (engines.size() == 1) {
    engines.front()->poll();
    return;
  }
  for (const auto& engine : engines)
    if (users_[engine->index()].load(std::memory_order_relaxed) > 0) engine->poll();
}

unsigned CompletionQueueImpl::users() const {
  unsigned all = 0;
  for (const auto& of_engine : users_)
    all += of_engine.load();
  return all;
}

void CompletionQueueImpl::add_user(const Engine& engine) { users_[engine.index()].fetch_add(1); }
void CompletionQueueImpl::remove_user(const Engine& engine) { users_[engine.index()].fetch_sub(1); }

int CompletionQueueImpl::take(std::span<WorkCompletion> out) {
  // Most polls find nothing and need no lock for that.
  if (head_.load() == tail_.load(std::memory_order_relaxed))
    return overrun_.load() ? -EOVERFLOW : 0;
  const std::lock_guard lock(read_lock_);
  std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  const std::uint64_t head = head_.load(std::memory_order_acquire);
  std::size_t count = 0;
  for (; tail != head && count < out.size(); ++tail) {
    const CompletionEntry& entry = ring_[tail & (ring_.size() - 1)];
    if (entry.owner == nullptr) continue;
    out[count++] = entry.work;
    entry.owner->return_credits(entry.send_credits, entry.receive_credits);
  }
  tail_.store(tail, std::memory_order_release);
  if (count == 0 && overrun_.load()) return -EOVERFLOW;
  return static_cast<int>(count);
}

int CompletionQueueImpl::request_notification(bool solicited_only) {
  if (device_->in_child()) return EIO;
  const std::uint8_t wish = solicited_only ? kSolicited : kAny;
  // A request for any completion is not narrowed by a later one for solicited ones.
  std::uint8_t now = armed_.load();
  while (now < wish && !armed_.compare_exchange_weak(now, wish)) {
  }
  for (const auto& engine : device_->group().engines)
    engine->polling_ends();
  return 0;
}

int CompletionQueueImpl::resize(unsigned depth) {
  if (device_->in_child()) return EIO;
  if (depth == 0 || depth > device_->limits().max_cq_depth) return EINVAL;
  try {
    std::vector<CompletionEntry> larger(std::bit_ceil(depth));
    const std::lock_guard reading(read_lock_);
    const std::lock_guard writing(write_lock_);
    const std::uint64_t tail = tail_.load();
    const std::uint64_t head = head_.load();
    if (head - tail > larger.size()) return EINVAL;
    for (std::uint64_t i = tail; i != head; ++i)
      larger[i & (larger.size() - 1)] = ring_[i & (ring_.size() - 1)];
    ring_.swap(larger);
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  return 0;
}

void CompletionQueueImpl::acknowledge(unsigned events) {
  if (channel_ && !device_->in_child()) channel_->acknowledge(seat_, events);
}

void CompletionQueueImpl::wait_acknowledged() {
  if (channel_ && !device_->in_child()) channel_->wait_acknowledged(seat_);
}

// --- The engine's side ---

bool CompletionQueueImpl::push(const CompletionEntry& entry) {
  {
    const std::lock_guard writing(write_lock_);
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    if (head - tail_.load(std::memory_order_acquire) >= ring_.size()) {
      return overrun_.exchange(true);
    }
    ring_[head & (ring_.size() - 1)] = entry;
    head_.store(head + 1);
  }
  notify(entry.solicited || entry.work.status != core::CompletionStatus::kSuccess);
  return true;
}

void CompletionQueueImpl::notify(bool solicited) {
  std::uint8_t armed = armed_.load();
  while (armed != kNot && (armed == kAny || solicited)) {
    if (!armed_.compare_exchange_weak(armed, kNot)) continue;
    if (channel_) channel_->post(seat_);
    return;
  }
}

void CompletionQueueImpl::forget(const QueuePairImpl& owner) {
  const std::lock_guard reading(read_lock_);
  const std::lock_guard writing(write_lock_);
  const std::uint64_t head = head_.load();
  for (std::uint64_t i = tail_.load(); i != head; ++i) {
    CompletionEntry& entry = ring_[i & (ring_.size() - 1)];
    if (entry.owner == &owner) entry.owner = nullptr;
  }
}

}  // namespace mrc::nic
