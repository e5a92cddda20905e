// One virtual cable: a unix socket that carries one frame per message and comes back by itself.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/types.h"
#include "nic/backend_descriptor.h"

namespace mrc::nic {

inline constexpr std::size_t kMaxFrameBytes = 8'192 + 256;  // payload and all headers

class WireCable {
 public:
  WireCable();
  ~WireCable();
  WireCable(WireCable&&) = default;
  WireCable(const WireCable&) = delete;

  // `path` names the far end's socket; "listen:PATH" waits there for the far end instead. A name
  // that begins with '@' is abstract. The text of an error, empty when there is none.
  std::string open(const std::string& path);

  // Connects, or accepts, if that is due. True when the state changed.
  bool advance(TimeNs now);
  bool connected() const { return connection_.valid(); }
  TimeNs next_attempt() const { return next_attempt_; }  // kNever while connected or listening
  int connection() const { return connection_.get(); }
  int listener() const { return listener_.get(); }

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
  // Cuts the connection and returns how many frames were lost with it.
  unsigned disconnect(TimeNs now);

 private:
  static constexpr std::size_t kSlots = 64;

  bool try_connect(TimeNs now);
  std::byte* slot(std::size_t index) { return frames_.get() + index * kMaxFrameBytes; }

  sockaddr_un address_{};
  socklen_t address_length_ = 0;
  bool listens_ = false;
  bool unlinks_ = false;
  Descriptor listener_;
  Descriptor connection_;
  TimeNs next_attempt_ = 0;
  DurationNs back_off_ns_ = 0;
  std::unique_ptr<std::byte[]> frames_;
  std::unique_ptr<std::size_t[]> lengths_;
  unsigned first_ = 0;  // ring of slots
  unsigned queued_ = 0;
};

}  // namespace mrc::nic
