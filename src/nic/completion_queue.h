// A completion queue: a ring written by the engines of its queue pairs and read by the program.
//
// Indexes only grow. Writers take turns on `head_` under `write_lock_`, readers on `tail_` under
// `read_lock_`. Locks: read_lock_, then write_lock_; an engine's lock, then write_lock_.
// An entry whose queue pair was destroyed or reset is emptied in place and skipped by readers.
//
// Notification. Arming and then polling once more, as verbs programs do, misses nothing: the writer
// moves `head_` and then looks at `armed_`, the program stores `armed_` and then looks at `head_`,
// all sequentially consistent, so one of the two sees the other.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "nic/completion_channel.h"
#include "nic/device.h"
#include "nic/engine/engine_group.h"
#include "os/spin_lock.h"

namespace mrc::nic {

class DeviceImpl;
class QueuePairImpl;

struct CompletionEntry {
  WorkCompletion work;
  QueuePairImpl* owner = nullptr;  // none: emptied
  std::uint32_t send_credits = 0;  // go back to the owner when the entry is polled
  std::uint32_t receive_credits = 0;
  bool solicited = false;
};

class CompletionQueueImpl final : public CompletionQueue {
 public:
  CompletionQueueImpl(std::shared_ptr<DeviceImpl> device, unsigned depth, void* cookie,
                      std::shared_ptr<CompletionChannelImpl> channel);
  ~CompletionQueueImpl() override;
  CompletionQueueImpl(const CompletionQueueImpl&) = delete;
  CompletionQueueImpl& operator=(const CompletionQueueImpl&) = delete;

  int poll(std::span<WorkCompletion> out) override;
  int request_notification(bool solicited_only) override;
  unsigned depth() const override;
  int resize(unsigned depth) override;
  unsigned users() const override;
  void acknowledge(unsigned events) override;
  void wait_acknowledged() override;

  // --- Under the lock of an engine.
  // False when the queue overran by this entry; later ones are swallowed without a word.
  bool push(const CompletionEntry& entry);
  bool overrun() const { return overrun_.load(); }

  // Empties the entries of a queue pair that makes no new ones. Takes the locks itself.
  void forget(const QueuePairImpl& owner);
  // A queue pair of that engine reports here, or does so no longer.
  void add_user(const Engine& engine);
  void remove_user(const Engine& engine);
  DeviceImpl* device() const { return device_.get(); }

 private:
  enum Armed : std::uint8_t { kNot, kSolicited, kAny };

  int take(std::span<WorkCompletion> out);
  void drive();
  void notify(bool solicited);

  std::shared_ptr<DeviceImpl> device_;
  std::shared_ptr<CompletionChannelImpl> channel_;
  ChannelSeat seat_;

  mutable os::SpinLock read_lock_;
  os::SpinLock write_lock_;
  std::vector<CompletionEntry> ring_;  // a power of two; replaced under both locks
  std::atomic<std::uint64_t> head_{0};
  std::atomic<std::uint64_t> tail_{0};
  std::atomic<bool> overrun_{false};
  std::atomic<std::uint8_t> armed_{kNot};
  std::array<std::atomic<unsigned>, node::kMaxThreads> users_{};  // by engine
};

}  // namespace mrc::nic
