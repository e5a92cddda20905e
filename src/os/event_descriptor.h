// A counter a program can wait for with poll(): an eventfd that gives out one unit per read.
#pragma once

#include <utility>

namespace mrc::os {

class EventDescriptor {
 public:
  EventDescriptor() = default;
  ~EventDescriptor();
  EventDescriptor(EventDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  EventDescriptor& operator=(EventDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  // 0 or an errno. Reads block until the program makes the descriptor non-blocking.
  int open();
  int fd() const { return fd_; }
  void add_one() const;
  // 0 when a unit was taken; EAGAIN and EINTR as read() has them.
  int take_one() const;
  // Takes back a unit that nobody has taken yet. Never blocks.
  bool withdraw_one() const;

 private:
  int fd_ = -1;
};

}  // namespace mrc::os
