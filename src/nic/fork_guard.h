// Tells a child process that what it inherited belongs to its parent.
//
// A child has the parent's memory and descriptors but none of its threads, and locks may be held by
// threads that do not exist. So a child must not touch a device of its parent at all.
#pragma once

#include <atomic>
#include <cstdint>

namespace mrc::nic {

class ForkGuard {
 public:
  ForkGuard();
  // True in every descendant of the process that made the guard.
  bool in_child() const {
    return generation_ != current_generation().load(std::memory_order_relaxed);
  }

 private:
  static std::atomic<std::uint32_t>& current_generation();
  std::uint32_t generation_;
};

}  // namespace mrc::nic
