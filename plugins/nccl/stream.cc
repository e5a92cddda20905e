#include "stream.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace mrc::nccl {
namespace {

constexpr int kBacklog = 128;

// Never destroyed: sockets may be closed while the process exits.
struct OpenSockets {
  std::mutex mutex;
  std::vector<int> descriptors;
};
OpenSockets& open_sockets() {
  static auto* instance = new OpenSockets;
  return *instance;
}

void before_fork() { open_sockets().mutex.lock(); }
void after_fork_in_parent() { open_sockets().mutex.unlock(); }
void after_fork_in_child() {
  for (const int descriptor : open_sockets().descriptors)
    ::close(descriptor);
  open_sockets().descriptors.clear();
  open_sockets().mutex.unlock();
}

void remember(int descriptor) {
  [[maybe_unused]] static const int kRegistered =
      pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  const std::lock_guard lock(open_sockets().mutex);
  open_sockets().descriptors.push_back(descriptor);
}

// False when the descriptor is not known, as in a child: then it is not ours to close.
bool forget(int descriptor) {
  const std::lock_guard lock(open_sockets().mutex);
  auto& all = open_sockets().descriptors;
  const auto found = std::find(all.begin(), all.end(), descriptor);
  if (found == all.end()) return false;
  all.erase(found);
  return true;
}

void send_at_once(int descriptor) {
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

Socket::Socket(int descriptor) : descriptor_(descriptor) {
  if (descriptor_ >= 0) remember(descriptor_);
}

Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

void Socket::close() {
  if (descriptor_ >= 0 && forget(descriptor_)) ::close(descriptor_);
  descriptor_ = -1;
}

bool Stream::open(const SocketName& peer) {
  close();
  socket_ = Socket(
      socket(peer.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!socket_.valid()) return false;
  send_at_once(socket_.get());
  if (connect(socket_.get(), peer.get(), peer.length) != 0 && errno != EINPROGRESS) {
    const int reason = errno;
    close();
    errno = reason;
    return false;
  }
  state_ = StreamState::kOpening;
  return true;
}

StreamState Stream::advance() {
  if (state_ != StreamState::kOpening) return state_;
  pollfd ready{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
  if (poll(&ready, 1, 0) <= 0) return state_;
  int reason = 0;
  socklen_t size = sizeof reason;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &reason, &size) != 0) reason = errno;
  if (reason != 0) {
    close();
    errno = reason;
    return state_;
  }
  state_ = StreamState::kOpen;
  return state_;
}

void Stream::send(const Message& message) {
  flush();
  out_ = encode(message);
  out_left_ = out_.size();
  flush();
}

bool Stream::flush() {
  while (out_left_ > 0 && state_ == StreamState::kOpen) {
    const ssize_t sent = ::send(socket_.get(), out_.data() + out_.size() - out_left_, out_left_,
                                MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      out_left_ -= static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN) {
      return false;
    } else if (errno != EINTR) {
      close();
    }
  }
  return out_left_ == 0;
}

std::optional<Message> Stream::receive(std::string& error) {
  while (state_ == StreamState::kOpen) {
    const ssize_t got =
        recv(socket_.get(), in_.data() + in_size_, in_.size() - in_size_, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return std::nullopt;
    if (got <= 0) {
      error = got == 0 ? "it closed the connection" : std::strerror(errno);
      close();
      return std::nullopt;
    }
    in_size_ += static_cast<std::size_t>(got);
    if (in_size_ < in_.size()) continue;
    in_size_ = 0;
    std::optional<Message> message = decode_message(in_);
    if (!message) {
      error = explain_bad_message(in_);
      close();
    }
    return message;
  }
  return std::nullopt;
}

void Stream::close() {
  socket_.close();
  state_ = StreamState::kClosed;
  in_size_ = out_left_ = 0;
}

Socket listen_on(const Address& address) {
  // Any interface may lead here, unless only this machine can.
  Address bind_to = address;
  if (!address.is_loopback()) {
    bind_to = address.is_v4() ? Address{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}} : Address{};
  }
  const SocketName name = socket_name(bind_to, 0);
  Socket listener(
      socket(name.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!listener.valid()) return listener;
  if (bind(listener.get(), name.get(), name.length) == 0 && ::listen(listener.get(), kBacklog) == 0)
    return listener;
  const int reason = errno;
  listener.close();
  errno = reason;
  return listener;
}

Socket accept_from(const Socket& listener) {
  const int descriptor = accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (descriptor >= 0) send_at_once(descriptor);
  return Socket(descriptor);
}

}  // namespace mrc::nccl
