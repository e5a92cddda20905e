// One cable of the wire back end: frames that wait to be sent, and a descriptor that takes them one
// a message. What the cable is made of is up to the class below it: a unix socket to a virtual
// switch, or a network interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/types.h"

namespace mrc::nic {

inline constexpr std::size_t kMaxFrameBytes = 8'192 + 256;  // payload and all headers

class WireCable {
 public:
  WireCable();
  virtual ~WireCable() = default;
  WireCable(const WireCable&) = delete;
  WireCable& operator=(const WireCable&) = delete;

  // Brings the link up if that is due and possible. True when it came up.
  virtual bool advance(TimeNs now) = 0;
  virtual bool connected() const = 0;
  // The link went away without a word on connection(); disconnect() is due.
  virtual bool lost() = 0;
  // When advance() should be called at the latest; kNever while connected or when it would not
  // help.
  virtual TimeNs next_attempt() const = 0;
  virtual int connection() const = 0;
  // Readable when advance() has something to accept; -1 where nothing is accepted.
  virtual int listener() const { return -1; }
  // The link is down from now on. Returns how many frames were lost with it.
  unsigned disconnect(TimeNs now);

  // Room for one frame, empty when there is none. commit() queues its first `length` bytes.
  std::span<std::byte> claim();
  void commit(std::size_t length);
  unsigned waiting() const { return queued_; }
  // Sends what waits. Frames that do not leave stay; `error` is why, 0 when all left.
  struct SendResult {
    unsigned frames = 0;
    unsigned calls = 0;
    int error = 0;
  };
  SendResult send_waiting();

 private:
  static constexpr std::size_t kSlots = 64;

  virtual void take_down(TimeNs now) = 0;
  std::byte* slot(std::size_t index) { return frames_.get() + index * kMaxFrameBytes; }

  std::unique_ptr<std::byte[]> frames_;
  std::unique_ptr<std::size_t[]> lengths_;
  unsigned first_ = 0;  // ring of slots
  unsigned queued_ = 0;
};

}  // namespace mrc::nic
