#include "lab/control.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace mrc::lab {
namespace {

constexpr std::size_t kMaxRequest = 65'536;
constexpr std::size_t kMaxReply = 131'072;
constexpr std::size_t kMaxClients = 1'024;
constexpr std::uint64_t kListenerTag = std::uint64_t{1} << 32;
constexpr int kBacklog = 64;
// Of a client with a lab that does not answer: it says so after the first of these, and gives up
// after all.
constexpr int kSlowS = 2;
constexpr int kSlowTimes = 15;

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

bool make_address(const std::string& path, sockaddr_un& address) {
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
    return false;
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return true;
}

const sockaddr* untyped(const sockaddr_un& address) {
  const void* const raw = &address;
  return static_cast<const sockaddr*>(raw);
}

void watch(int epoll, int descriptor, std::uint64_t tag) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = tag;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) != 0) fail("epoll_ctl");
}

}  // namespace

std::vector<std::string> parse_request(const std::string& text) {
  std::vector<std::string> words;
  std::size_t from = 0;
  while (from <= text.size()) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    words.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return words;
}

ControlServer::ControlServer(const std::string& path, Handler handler, Farewell farewell)
    : handler_(std::move(handler)),
      farewell_(std::move(farewell)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      listener_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  sockaddr_un address{};
  if (!epoll_.valid() || !listener_.valid()) fail("control socket");
  if (!make_address(path, address) ||
      ::bind(listener_.get(), untyped(address), sizeof(address)) != 0 ||
      ::listen(listener_.get(), kBacklog) != 0) {
    fail(path);
  }
  watch(epoll_.get(), listener_.get(), kListenerTag);
}

void ControlServer::accept_all() {
  for (;;) {
    os::Descriptor socket(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) return;
    if (clients_.size() >= kMaxClients) continue;
    watch(epoll_.get(), socket.get(), next_client_);
    clients_.emplace(ClientId{next_client_++}, std::move(socket));
  }
}

void ControlServer::poll() {
  std::array<epoll_event, 16> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t tag = events[static_cast<std::size_t>(i)].data.u64;
    if (tag == kListenerTag) {
      accept_all();
      continue;
    }
    const ClientId client{static_cast<std::uint32_t>(tag)};
    const auto found = clients_.find(client);
    if (found == clients_.end() || serve(client, found->second.get())) continue;
    clients_.erase(found);
    farewell_(client);
  }
}

// One request. False: the client is gone.
bool ControlServer::serve(ClientId client, int socket) {
  std::string request(kMaxRequest, '\0');
  const ssize_t got = ::recv(socket, request.data(), request.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got <= 0) return false;
  request.resize(static_cast<std::size_t>(got));
  const Reply reply = handler_(client, parse_request(request));
  std::string text = (reply.ok ? "+" : "-") + reply.text;
  if (text.size() > kMaxReply) text.resize(kMaxReply);
  return ::send(socket, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(text.size());
}

bool ControlClient::connect(const std::string& path) {
  sockaddr_un address{};
  os::Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.valid() || !make_address(path, address)) return false;
  if (::connect(socket.get(), untyped(address), sizeof(address)) != 0) return false;
  const timeval patience{.tv_sec = kSlowS, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  socket_ = std::move(socket);
  return true;
}

Reply ControlClient::ask(std::span<const std::string> words) {
  std::string request;
  for (const std::string& word : words)
    request += (request.empty() ? "" : "\n") + word;
  if (request.size() > kMaxRequest) return {.ok = false, .text = "the command is too long"};
  Reply gone{.ok = false, .text = "the lab went away"};
  if (::send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return gone;
  std::string answer(kMaxReply, '\0');
  ssize_t got = 0;
  bool silent = true;
  for (int waits = 0; silent && waits < kSlowTimes; ++waits) {
    do {
      got = ::recv(socket_.get(), answer.data(), answer.size(), 0);
    } while (got < 0 && errno == EINTR);
    silent = got < 0 && errno == EAGAIN;
    if (silent && waits == 0 && slow_) slow_();
  }
  if (silent) return {.ok = false, .text = "the lab does not answer"};
  if (got <= 0) return gone;
  return {.ok = answer[0] == '+', .text = answer.substr(1, static_cast<std::size_t>(got) - 1)};
}

}  // namespace mrc::lab
