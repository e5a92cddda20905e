#include "commands/exporter/http_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "os/clock.h"

namespace mrc::tool::exporter {
namespace {

constexpr int kBacklog = 64;

static_assert(EAGAIN == EWOULDBLOCK);
bool would_block() { return errno == EAGAIN || errno == EINTR; }

int port_of(int socket) {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &length) != 0) return 0;
  return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(own).sin6_port
                                         : reinterpret_cast<const sockaddr_in&>(own).sin_port);
}

}  // namespace

int HttpServer::listen(const std::string& address, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    return EADDRNOTAVAIL;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, ::freeaddrinfo);
  listener_ =
      os::Descriptor(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_.valid()) return errno;
  const int yes = 1;
  ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(listener_.get(), found->ai_addr, found->ai_addrlen) != 0) return errno;
  if (::listen(listener_.get(), kBacklog) != 0) return errno;
  port_ = port_of(listener_.get());
  return 0;
}

void HttpServer::step(int milliseconds) {
  std::vector<pollfd> waits;
  for (const Connection& connection : connections_) {
    const short wanted = connection.to_send.empty() ? POLLIN : POLLOUT;
    waits.push_back({.fd = connection.socket.get(), .events = wanted, .revents = 0});
  }
  const bool room = connections_.size() < kConnections;
  waits.push_back({.fd = room ? listener_.get() : -1, .events = POLLIN, .revents = 0});
  ::poll(waits.data(), waits.size(), milliseconds);
  const TimeNs now = os::monotonic_now();
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    Connection& connection = connections_[i];
    if (waits[i].revents != 0 && connection.to_send.empty()) receive(connection);
    if (now >= connection.until) {
      if (!connection.to_send.empty()) connection.done = true;
      if (!connection.done) answer(connection, 408);
    }
    if (!connection.to_send.empty()) send(connection);
  }
  std::erase_if(connections_, [](const Connection& connection) { return connection.done; });
  if (waits.back().revents != 0) accept_all(now);
}

void HttpServer::accept_all(TimeNs now) {
  while (connections_.size() < kConnections) {
    os::Descriptor socket(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) return;
    Connection connection;
    connection.socket = std::move(socket);
    connection.until = now + kPatienceNs;
    connections_.push_back(std::move(connection));
  }
}

void HttpServer::receive(Connection& connection) {
  std::array<char, kMaxHeadBytes> bytes;
  const ssize_t got = ::recv(connection.socket.get(), bytes.data(), bytes.size(), 0);
  if (got < 0 && would_block()) return;
  if (got <= 0) {
    connection.done = true;
    return;
  }
  connection.received.append(bytes.data(), static_cast<std::size_t>(got));
  if (is_whole_head(connection.received)) return answer(connection, 0);
  if (connection.received.size() > kMaxHeadBytes) answer(connection, 431);
}

// Of a refusal, or of what was asked for.
void HttpServer::answer(Connection& connection, int refusal) {
  HttpRequest request;
  if (refusal == 0) request = parse_http_request(connection.received);
  const int status = refusal != 0 ? refusal : request.status;
  const HttpAnswer reply =
      status == 200 ? page_(request) : HttpAnswer{.status = status, .body = "bad request\n"};
  connection.to_send = http_text(reply, request.head_only);
  connection.until = os::monotonic_now() + kPatienceNs;
}

void HttpServer::send(Connection& connection) {
  while (connection.sent < connection.to_send.size()) {
    const ssize_t count =
        ::send(connection.socket.get(), connection.to_send.data() + connection.sent,
               connection.to_send.size() - connection.sent, MSG_NOSIGNAL);
    if (count < 0 && would_block()) return;
    if (count <= 0) break;
    connection.sent += static_cast<std::size_t>(count);
  }
  ::shutdown(connection.socket.get(), SHUT_RDWR);
  connection.done = true;
}

}  // namespace mrc::tool::exporter
