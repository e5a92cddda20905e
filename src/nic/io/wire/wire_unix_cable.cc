#include "nic/io/wire/wire_unix_cable.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace mrc::nic {
namespace {

constexpr DurationNs kFirstBackOffNs = 10 * kMillisecondNs;
constexpr DurationNs kLongestBackOffNs = kSecondNs;
constexpr std::string_view kListenPrefix = "listen:";

sockaddr* untyped(sockaddr_un& address) {
  void* const raw = &address;
  return static_cast<sockaddr*>(raw);
}

os::Descriptor new_socket() {
  return os::Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace

WireUnixCable::~WireUnixCable() {
  if (unlinks_ && listener_.valid()) ::unlink(address_.sun_path);
}

std::string WireUnixCable::open(const std::string& path, std::uint32_t send_buffer_bytes) {
  send_buffer_bytes_ = static_cast<int>(send_buffer_bytes);
  std::string_view name = path;
  listens_ = name.starts_with(kListenPrefix);
  if (listens_) name.remove_prefix(kListenPrefix.size());
  if (name.empty() || name.size() >= sizeof(address_.sun_path)) {
    return "the path of a cable has 1 to " + std::to_string(sizeof(address_.sun_path) - 1) +
           " characters: " + path;
  }
  address_.sun_family = AF_UNIX;
  std::memcpy(address_.sun_path, name.data(), name.size());
  const bool is_abstract = name[0] == '@';
  if (is_abstract) address_.sun_path[0] = '\0';
  address_length_ =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + (is_abstract ? 0 : 1));
  if (!listens_) return {};

  next_attempt_ = kNever;
  listener_ = new_socket();
  if (!listener_.valid()) return path + ": " + std::strerror(errno);
  int bound = ::bind(listener_.get(), untyped(address_), address_length_);
  if (bound != 0 && errno == EADDRINUSE && !is_abstract) {
    // A name left behind by somebody who is gone refuses connections.
    const os::Descriptor test = new_socket();
    if (::connect(test.get(), untyped(address_), address_length_) != 0 && errno == ECONNREFUSED) {
      ::unlink(address_.sun_path);
      bound = ::bind(listener_.get(), untyped(address_), address_length_);
    } else {
      errno = EADDRINUSE;
    }
  }
  if (bound != 0 || ::listen(listener_.get(), 1) != 0) {
    const int error = errno;
    listener_.close();
    return path + ": " + std::strerror(error);
  }
  unlinks_ = !is_abstract;
  return {};
}

bool WireUnixCable::try_connect(TimeNs now) {
  os::Descriptor socket = new_socket();
  if (socket.valid() && ::connect(socket.get(), untyped(address_), address_length_) == 0) {
    connection_ = std::move(socket);
    limit_sending();
    next_attempt_ = kNever;
    back_off_ns_ = 0;
    return true;
  }
  back_off_ns_ = std::clamp(back_off_ns_ * 2, kFirstBackOffNs, kLongestBackOffNs);
  next_attempt_ = now + back_off_ns_;
  return false;
}

bool WireUnixCable::advance(TimeNs now) {
  if (connected()) return false;
  if (!listens_) return now >= next_attempt_ && try_connect(now);
  connection_ =
      os::Descriptor(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!connected()) return false;
  limit_sending();
  return true;
}

void WireUnixCable::limit_sending() const {
  ::setsockopt(connection(), SOL_SOCKET, SO_SNDBUF, &send_buffer_bytes_,
               sizeof(send_buffer_bytes_));
}

void WireUnixCable::take_down(TimeNs now) {
  connection_.close();
  if (listens_) return;
  back_off_ns_ = 0;
  next_attempt_ = now;
}

}  // namespace mrc::nic
