// A completion channel: events of completion queues in the order they came, one descriptor.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "nic/device.h"
#include "nic/fork_guard.h"
#include "os/event_descriptor.h"

namespace mrc::nic {

// The part of a completion queue its channel looks after. All under the channel's lock.
struct ChannelSeat {
  void* cookie = nullptr;
  std::uint64_t waiting = 0;       // events not yet taken
  std::uint64_t taken = 0;         // by the program
  std::uint64_t acknowledged = 0;  // of those
  ChannelSeat* next = nullptr;     // in the line of seats with waiting events
  bool in_line = false;
};

class CompletionChannelImpl final : public CompletionChannel {
 public:
  explicit CompletionChannelImpl(os::EventDescriptor descriptor)
      : descriptor_(std::move(descriptor)) {}

  int descriptor() const override { return descriptor_.fd(); }
  int wait(void*& cq_cookie) override;
  unsigned users() const override;

  void attach();
  // Drops the seat's waiting events and waits until the taken ones are acknowledged.
  void detach(ChannelSeat& seat);
  // Never blocks for long; called under the engine lock.
  void post(ChannelSeat& seat);
  void acknowledge(ChannelSeat& seat, unsigned events);
  void wait_acknowledged(ChannelSeat& seat);

 private:
  void append(ChannelSeat& seat);
  void remove(ChannelSeat& seat);

  ForkGuard fork_guard_;
  os::EventDescriptor descriptor_;
  mutable std::mutex mutex_;
  std::condition_variable acknowledged_;
  ChannelSeat* first_ = nullptr;
  ChannelSeat* last_ = nullptr;
  unsigned users_ = 0;
};

}  // namespace mrc::nic
