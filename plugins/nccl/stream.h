// TCP between the two ends of a connection: set-up, and afterwards the sign that the peer lives.
//
// Nothing blocks. Descriptors are close-on-exec, and a child made by fork() closes its copies,
// since otherwise a dead process would seem alive as long as one of its children. A Stream belongs
// to one thread at a time; different ones are independent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "address.h"
#include "messages.h"

namespace mrc::nccl {

// A descriptor that closes itself and is known to the fork handler.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor);
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() { close(); }

  int get() const { return descriptor_; }
  bool valid() const { return descriptor_ >= 0; }
  void close();

 private:
  int descriptor_ = -1;
};

enum class StreamState : std::uint8_t { kOpening, kOpen, kClosed };

class Stream {
 public:
  Stream() = default;
  explicit Stream(Socket socket) : socket_(std::move(socket)), state_(StreamState::kOpen) {}

  // Begins to connect; false with errno set when that fails at once.
  bool open(const SocketName& peer);
  // Looks whether opening is over. kClosed: errno says why.
  StreamState advance();
  StreamState state() const { return state_; }

  void send(const Message& message);
  // True when everything was handed to the kernel.
  bool flush();

  // A whole message, or nothing yet; malformed bytes close the stream and say why in `error`.
  std::optional<Message> receive(std::string& error);
  void close();

 private:
  Socket socket_;
  StreamState state_ = StreamState::kClosed;
  MessageBytes out_{};
  std::size_t out_left_ = 0;  // of out_, at its end
  MessageBytes in_{};
  std::size_t in_size_ = 0;
};

// A listening socket; invalid with errno set when there is none to be had.
Socket listen_on(const Address& address);
// A connection that came in; invalid when none waits.
Socket accept_from(const Socket& listener);

}  // namespace mrc::nccl
