// Asynchronous events of a device: one hub, any number of streams.
//
// Every stream gets every event. An event that was taken and names a queue pair or completion queue
// holds that object until it is acknowledged. Events nobody takes are dropped when their object
// goes, or when a stream that nobody reads is full.
//
// Any thread. The hub's lock is a leaf: it may be taken under the engine lock.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/ring.h"
#include "nic/device.h"
#include "nic/fork_guard.h"
#include "os/event_descriptor.h"

namespace mrc::nic {

class AsyncStream;

class AsyncHub : public std::enable_shared_from_this<AsyncHub> {
 public:
  // None when memory or descriptors are out.
  std::unique_ptr<AsyncEvents> subscribe();

  // Never blocks and never fails.
  void publish(const AsyncEvent& event);

  // For the end of `object`: drops what waits and waits for what was taken.
  void retire(const void* object);

 private:
  friend class AsyncStream;

  static const void* object_of(const AsyncEvent& event);

  std::mutex mutex_;
  std::condition_variable acknowledged_;
  std::vector<AsyncStream*> streams_;
  std::map<const void*, unsigned> held_;  // taken and not acknowledged
};

class AsyncStream final : public AsyncEvents {
 public:
  AsyncStream(std::shared_ptr<AsyncHub> hub, os::EventDescriptor descriptor);
  ~AsyncStream() override;
  AsyncStream(const AsyncStream&) = delete;
  AsyncStream& operator=(const AsyncStream&) = delete;

  int descriptor() const override { return descriptor_.fd(); }
  int wait(AsyncEvent& out) override;
  void acknowledge(const AsyncEvent& event) override;

 private:
  friend class AsyncHub;
  static constexpr std::size_t kCapacity = 1024;

  ForkGuard fork_guard_;
  std::shared_ptr<AsyncHub> hub_;
  os::EventDescriptor descriptor_;
  Ring<AsyncEvent> events_;  // under the hub's lock
};

}  // namespace mrc::nic
