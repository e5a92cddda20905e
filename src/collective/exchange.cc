#include "collective/exchange.h"

#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>
#include <utility>

#include "collective/failure.h"
#include "os/interrupt.h"

namespace mrc::collective {
namespace {

using Clock = std::chrono::steady_clock;

// 16,384 queue pairs with their numbers fit well.
constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxErrorBytes = 400;
constexpr int kPollMs = 100;
constexpr int kBacklog = 1'024;
constexpr int kKeepIdleS = 5;
constexpr int kKeepIntervalS = 2;
constexpr int kKeepCount = 3;
constexpr int kUserTimeoutMs = 15'000;
constexpr auto kShortOfMemory = std::chrono::milliseconds(1);

class Addresses {
 public:
  Addresses(const char* host, std::uint16_t port, int flags) {
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    error_ = getaddrinfo(host, std::to_string(port).c_str(), &hints, &list_);
  }
  ~Addresses() {
    if (error_ == 0) freeaddrinfo(list_);
  }
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;

  int error() const { return error_; }
  const addrinfo* first() const { return list_; }

 private:
  addrinfo* list_ = nullptr;
  int error_ = 0;
};

void set_option(int socket, int level, int name, int value) {
  setsockopt(socket, level, name, &value, sizeof(value));
}

// A peer whose host is gone is noticed after about ten seconds.
void prepare(int socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdleS);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, kKeepIntervalS);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, kKeepCount);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
}

std::string numeric_name(const sockaddr_storage& address, socklen_t length) {
  std::array<char, NI_MAXHOST> host = {};
  const void* const generic = &address;
  if (getnameinfo(static_cast<const sockaddr*>(generic), length, host.data(), host.size(), nullptr,
                  0, NI_NUMERICHOST) != 0)
    return "unknown";
  // An IPv4 address on a socket for both kinds.
  const std::string_view name = host.data();
  const bool mapped = name.starts_with("::ffff:") && name.find('.') != std::string_view::npos;
  return std::string(mapped ? name.substr(sizeof("::ffff:") - 1) : name);
}

// Waits for events on a socket: 1 there, 0 time-out. Ctrl-C is a Failure.
int wait_for(int socket, short events, double timeout_s) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_s);
  for (;;) {
    pollfd entry = {socket, events, 0};
    const int ready = ::poll(&entry, 1, kPollMs);
    if (ready > 0) return 1;
    if (os::Interrupt::raised()) throw Failure("interrupted", FailureKind::kInterrupted);
    if (ready < 0 && errno != EINTR) throw Failure(fmt::format("poll: {}", std::strerror(errno)));
    if (timeout_s > 0 && Clock::now() >= deadline) return 0;
  }
}

int finish_connect(int socket, double timeout_s) {
  if (wait_for(socket, POLLOUT, timeout_s) == 0) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof(error);
  getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

std::string connect_failure(const std::string& host, std::uint16_t port, int error) {
  const std::string where = fmt::format("cannot connect to {} port {}", host, port);
  if (error == ECONNREFUSED) return where + ": refused; is the server running?";
  if (error == ETIMEDOUT) return where + ": no answer; is the host up and the port open?";
  return fmt::format("{}: {}", where, std::strerror(error));
}

// A peer's words, fit for a terminal: not too many, and no letter cut in two.
std::string printable(std::string text) {
  std::size_t end = std::min(text.size(), kMaxErrorBytes);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  text.resize(end);
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return text;
}

int listen_on(std::uint16_t port) {
  const int both = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int listener = both >= 0 ? both : socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) throw Failure(fmt::format("socket: {}", std::strerror(errno)));
  set_option(listener, SOL_SOCKET, SO_REUSEADDR, 1);
  if (both >= 0) set_option(listener, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  sockaddr_in6 six = {};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  sockaddr_in four = {};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  const void* const any = both >= 0 ? static_cast<const void*>(&six) : &four;
  const socklen_t length = both >= 0 ? sizeof(six) : sizeof(four);
  if (bind(listener, static_cast<const sockaddr*>(any), length) != 0 ||
      listen(listener, kBacklog) != 0) {
    const int error = errno;
    close(listener);
    throw Failure(fmt::format("cannot listen on TCP port {}: {}{}", port, std::strerror(error),
                              error == EADDRINUSE ? "; another server? choose another port" : ""));
  }
  return listener;
}

}  // namespace

Exchange::Exchange(int socket, std::string peer) : socket_(socket), peer_(std::move(peer)) {
  prepare(socket_);
}

Exchange::Exchange(Exchange&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      peer_(std::move(other.peer_)),
      received_(std::move(other.received_)) {}

Exchange::~Exchange() {
  if (socket_ >= 0) close(socket_);
}

Listener::Listener(std::uint16_t port) : socket_(listen_on(port)) {}

Listener Listener::inherited(int socket) {
  int listens = 0;
  socklen_t length = sizeof(listens);
  if (getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0)
    throw Failure(fmt::format("descriptor {} is no socket that listens", socket),
                  FailureKind::kUsage);
  return Listener(Adopt{socket});
}

Listener::Listener(Listener&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}

Listener::~Listener() {
  if (socket_ >= 0) close(socket_);
}

std::uint16_t Listener::port() const {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  void* const generic = &address;
  if (getsockname(socket_, static_cast<sockaddr*>(generic), &length) != 0) return 0;
  // The port stands at the same place for both families.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  return ntohs(static_cast<const sockaddr_in*>(generic)->sin_port);
}

Exchange Listener::accept(double timeout_s) const {
  if (wait_for(socket_, POLLIN, timeout_s) == 0)
    throw Failure(fmt::format("nobody connected for {:.0f} s", timeout_s), FailureKind::kTimeout);
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  void* const generic = &address;
  const int socket = accept4(socket_, static_cast<sockaddr*>(generic), &length, SOCK_CLOEXEC);
  if (socket < 0) throw Failure(fmt::format("accept: {}", std::strerror(errno)));
  return {socket, numeric_name(address, length)};
}

Exchange Exchange::connect(const std::string& host, std::uint16_t port, double timeout_s) {
  const Addresses addresses(host.c_str(), port, 0);
  if (addresses.error() != 0)
    throw Failure(fmt::format("cannot find host {}: {}", host, gai_strerror(addresses.error())));
  int error = EHOSTUNREACH;
  for (const addrinfo* at = addresses.first(); at != nullptr; at = at->ai_next) {
    const int socket =
        ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol);
    if (socket < 0) continue;
    error = ::connect(socket, at->ai_addr, at->ai_addrlen) == 0 ? 0 : errno;
    Exchange made(socket, host);
    if (error == EINPROGRESS) error = finish_connect(socket, timeout_s);
    if (error == 0) return made;
  }
  throw Failure(connect_failure(host, port, error),
                error == ETIMEDOUT ? FailureKind::kTimeout : FailureKind::kFailed);
}

void Exchange::wait(short events, double timeout_s) const {
  if (wait_for(socket_, events, timeout_s) == 0)
    throw Failure(fmt::format("no word from {} for {:.0f} s", peer_, timeout_s),
                  FailureKind::kTimeout);
}

void Exchange::send(const nlohmann::json& message) {
  // Names of files and hosts need not be UTF-8.
  const std::string line =
      message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  const auto give_up = Clock::now() + std::chrono::milliseconds(kUserTimeoutMs);
  std::size_t sent = 0;
  while (sent < line.size()) {
    const ssize_t n =
        ::send(socket_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      sent += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      wait(POLLOUT, kUserTimeoutMs / 1e3);
    } else if ((errno == ENOBUFS || errno == ENOMEM) && Clock::now() < give_up) {
      std::this_thread::sleep_for(kShortOfMemory);  // the system, not the peer
    } else if (errno != EINTR) {
      throw Failure(fmt::format("{} hung up ({})", peer_, std::strerror(errno)));
    }
  }
}

bool Exchange::readable() const {
  if (received_.find('\n') != std::string::npos) return true;
  pollfd entry = {socket_, POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

bool Exchange::hung_up() const {
  char byte = 0;
  const ssize_t n = recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

bool Exchange::take_line(std::string& line) {
  const std::size_t end = received_.find('\n');
  if (end == std::string::npos) return false;
  line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return true;
}

void Exchange::take_bytes() {
  std::array<char, 16'384> chunk;
  const ssize_t n = recv(socket_, chunk.data(), chunk.size(), MSG_DONTWAIT);
  if (n == 0) throw Failure(fmt::format("{} hung up before the end", peer_));
  if (n > 0) {
    received_.append(chunk.data(), static_cast<std::size_t>(n));
  } else if (errno != EAGAIN && errno != EINTR) {
    throw Failure(fmt::format("connection to {} is lost: {}", peer_, std::strerror(errno)));
  }
}

nlohmann::json Exchange::understand(const std::string& line) const {
  nlohmann::json message = nlohmann::json::parse(line, nullptr, false);
  if (!message.is_object()) throw Failure(fmt::format("{} does not speak our protocol", peer_));
  const auto error = message.find("error");
  if (error != message.end() && error->is_string())
    throw Failure(fmt::format("{} says: {}", peer_, printable(error->get<std::string>())));
  return message;
}

nlohmann::json Exchange::receive(double timeout_s) {
  std::string line;
  while (!take_line(line)) {
    if (received_.size() > kMaxLineBytes)
      throw Failure(fmt::format("{} does not speak our protocol", peer_));
    wait(POLLIN, timeout_s);
    take_bytes();
  }
  return understand(line);
}

std::optional<nlohmann::json> Exchange::receive_now(std::size_t most_bytes) {
  std::string line;
  if (!take_line(line)) {
    take_bytes();
    if (!take_line(line)) {
      if (received_.size() > most_bytes)
        throw Failure(fmt::format("{} does not speak our protocol", peer_));
      return std::nullopt;
    }
  }
  return understand(line);
}

}  // namespace mrc::collective
