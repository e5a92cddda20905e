// The asynchronous events of one context, out of the device's stream, with the owners of the
// objects in place of the objects.
//
// Any thread. An owner is registered as long as its object lives; events of objects registered
// elsewhere are passed over.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "nic/device.h"

namespace mrc::api {

struct OwnedEvent {
  nic::AsyncEvent event;
  void* owner = nullptr;  // as registered; none for events of ports and the device
};

class AsyncSource {
 public:
  // ENOMEM, EMFILE.
  static int open(nic::Device& device, std::unique_ptr<AsyncSource>& out);

  int descriptor() const { return events_->descriptor(); }

  void add(const void* object, void* owner);
  void remove(const void* object);

  // An errno; EAGAIN when there is none and `block` is not set.
  int next(bool block, OwnedEvent& out);
  void acknowledge(const nic::AsyncEvent& event) { events_->acknowledge(event); }

 private:
  bool find_owner(OwnedEvent& event);

  std::unique_ptr<nic::AsyncEvents> events_;
  std::mutex mutex_;
  std::unordered_map<const void*, void*> owners_;
};

}  // namespace mrc::api
