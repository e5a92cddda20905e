#include "commands/view/page_server.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "commands/view/assets.h"

namespace mrc::tool::view_tool {
namespace {

constexpr int kBacklog = 64;
constexpr int kDeafMs = 200;  // when nobody can be let in
constexpr std::string_view kWords = "text/plain; charset=utf-8";

std::int64_t now_ms() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

// Nothing from elsewhere is loaded, run or framed, whatever the page says.
constexpr std::string_view kSafety =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\nCache-Control: no-store\r\n"
    "Connection: close\r\n";

const char* reason(unsigned status) {
  switch (status) {
    case 200:
      return "OK";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Bad Request";
  }
}

os::Descriptor listen_at(const ServerOptions& options) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(options.port);
  if (::inet_pton(AF_INET, options.address.c_str(), &place.sin_addr) != 1)
    throw std::runtime_error("'" + options.address + "' is no IPv4 address");
  os::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const void* const raw = &place;
  if (!socket.valid() ||
      ::bind(socket.get(), static_cast<const sockaddr*>(raw), sizeof(place)) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    throw std::runtime_error(fmt::format("cannot listen at {} port {}: {}", options.address,
                                         options.port, std::strerror(errno)));
  }
  return socket;
}

std::uint16_t port_of(const os::Descriptor& socket) {
  sockaddr_in place{};
  socklen_t size = sizeof(place);
  void* const raw = &place;
  ::getsockname(socket.get(), static_cast<sockaddr*>(raw), &size);
  return ntohs(place.sin_port);
}

}  // namespace

PageServer::PageServer(const ServerOptions& options, const LineLog& log, DeedFunction act)
    : log_(log),
      act_(std::move(act)),
      address_(options.address),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      listener_(listen_at(options)) {
  gate_ = {.token = options.token, .port = port_of(listener_)};
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = listener_.get();
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event);
}

std::string PageServer::url() const {
  const std::string host = address_ == "0.0.0.0" ? "127.0.0.1" : address_;
  return fmt::format("http://{}:{}/{}/", host, gate_.port, gate_.token);
}

// So many at a time, that those who are there get their turn.
void PageServer::accept_all() {
  for (int i = 0; i < kBacklog; ++i) {
    os::Descriptor socket(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid()) {
      take_in(std::move(socket));
      continue;
    }
    const bool full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    // It would be told of the one who waits again and again.
    if (full && !make_room()) listen_again(false);
    if (!full && errno != ECONNABORTED && errno != EINTR) return;
    if (deaf_until_ms_ != 0) return;
  }
}

void PageServer::take_in(os::Descriptor socket) {
  if (connections_.size() >= kMaxConnections && !make_room()) return;
  const int number = socket.get();
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = number;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, number, &event) != 0) return;
  Connection& connection = connections_[number];
  connection = {};
  connection.socket = std::move(socket);
  connection.number = ++came_;
  connection.until_ms = now_ms() + kPatienceMs;
}

// Whoever is to leave is listened to once more: the owner's request may have come meanwhile.
bool PageServer::make_room() {
  for (;;) {
    auto oldest = connections_.end();
    for (auto each = connections_.begin(); each != connections_.end(); ++each) {
      const bool stranger = !each->second.known;
      if (stranger && (oldest == connections_.end() || each->second.number < oldest->second.number))
        oldest = each;
    }
    if (oldest == connections_.end()) return false;
    if (receive(oldest->second) && oldest->second.known) continue;
    connections_.erase(oldest);
    return true;
  }
}

void PageServer::listen_again(bool listens) {
  deaf_until_ms_ = listens ? 0 : now_ms() + kDeafMs;
  epoll_event event{};
  event.events = listens ? std::uint32_t{EPOLLIN} : 0U;
  event.data.fd = listener_.get();
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &event);
}

void PageServer::watch(int number, const Connection& connection) {
  epoll_event event{};
  const std::uint32_t hears = connection.said_all ? 0U : std::uint32_t{EPOLLIN};
  event.events = connection.waits_for_room ? hears | EPOLLOUT : hears;
  event.data.fd = number;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, number, &event);
}

void PageServer::poll(int wait_ms) {
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), wait_ms);
  for (int i = 0; i < count; ++i)
    look_at(events[static_cast<std::size_t>(i)]);
  if (deaf_until_ms_ != 0 && now_ms() >= deaf_until_ms_) listen_again(true);
  sweep();
}

void PageServer::look_at(const epoll_event& event) {
  if (event.data.fd == listener_.get()) return accept_all();
  const auto found = connections_.find(event.data.fd);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if ((event.events & EPOLLOUT) != 0) connection.waits_for_room = false;
  const bool left = connection.said_all && (event.events & (EPOLLHUP | EPOLLERR)) != 0;
  const bool speaks = (event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0;
  if (left || (speaks && !receive(connection))) connections_.erase(found);
}

// Everybody gets on, and whoever is out of patience leaves.
void PageServer::sweep() {
  viewers_ = 0;
  for (auto each = connections_.begin(); each != connections_.end();) {
    Connection& connection = each->second;
    take_outcome(connection);
    const bool waited = connection.waits_for_room;
    const bool stays = (waited || send_on(connection)) && now_ms() < connection.until_ms;
    if (!stays) {
      each = connections_.erase(each);
      continue;
    }
    if (waited != connection.waits_for_room || !waited) watch(each->first, connection);
    viewers_ += connection.streams ? 1 : 0;
    ++each;
  }
}

bool PageServer::receive(Connection& connection) {
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t got = ::recv(connection.socket.get(), buffer.data(), buffer.size(), 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    const bool asked = connection.out || connection.outcome.valid();
    if (got == 0) {
      // It may still want its answer, but a viewer that closes is gone.
      connection.said_all = true;
      return asked && !connection.streams;
    }
    // Whoever has asked has nothing more to say.
    if (asked || connection.streams) return !connection.streams;
    connection.in.append(buffer.data(), static_cast<std::size_t>(got));
    view::HttpParse parse = view::parse_http_request(connection.in);
    if (parse.state == view::HttpParse::State::kIncomplete) continue;
    connection.in.clear();
    connection.until_ms = now_ms() + kPatienceMs;
    if (parse.state == view::HttpParse::State::kDone) {
      answer(connection, parse.request);
    } else {
      refuse(connection, parse.status);
    }
  }
}

void PageServer::reply(Connection& connection, unsigned status, std::string_view type,
                       std::string_view body) {
  connection.out = std::make_shared<const std::string>(
      fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}\r\n{}", status,
                  reason(status), type, body.size(), kSafety, body));
}

void PageServer::refuse(Connection& connection, unsigned status) {
  reply(connection, status, kWords,
        status == 403 ? "Not for you: use the address that mrc view printed.\n"
                      : fmt::format("{}.\n", reason(status)));
}

void PageServer::answer(Connection& connection, const view::HttpRequest& request) {
  const view::Gate::Verdict verdict = gate_.judge(request);
  if (verdict.status != 200) return refuse(connection, verdict.status);
  connection.known = true;
  const std::string_view wanted = verdict.wanted;
  const bool posts = request.method == view::HttpRequest::Method::kPost;
  if (posts && wanted != "act") return refuse(connection, 405);
  if (posts) return act(connection, request.body);
  if (wanted == "stream") {
    connection.streams = true;
    connection.out = std::make_shared<const std::string>(
        fmt::format("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{}\r\n", kSafety));
    return;
  }
  const Asset* const asset = find_asset(wanted.empty() ? "index.html" : wanted);
  if (asset == nullptr) return refuse(connection, 404);
  reply(connection, 200, asset->type, asset->bytes);
}

void PageServer::act(Connection& connection, const std::string& body) {
  view::Deed deed;
  if (!view::parse_deed(body, deed)) return refuse(connection, 400);
  if (!act_) return reply(connection, 409, kWords, "nothing here can be broken");
  connection.outcome = act_(deed);
  connection.until_ms = now_ms() + kDeedMs;
}

// The answer to a deed, when it is done or takes too long.
void PageServer::take_outcome(Connection& connection) {
  if (!connection.outcome.valid()) return;
  if (connection.outcome.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    const Outcome outcome = connection.outcome.get();
    reply(connection, outcome.ok ? 200 : 409, kWords, outcome.text);
  } else if (now_ms() >= connection.until_ms) {
    connection.outcome = {};
    reply(connection, 504, kWords, "the lab does not answer; it may still do it when it goes on");
  }
  if (!connection.outcome.valid()) connection.until_ms = now_ms() + kPatienceMs;
}

bool PageServer::next_line(Connection& connection) {
  connection.out = log_.at(connection.next_line);
  connection.sent = 0;
  if (connection.out) ++connection.next_line;
  return connection.out != nullptr;
}

bool PageServer::send_on(Connection& connection) {
  while (connection.out || (connection.streams && next_line(connection))) {
    const std::string& bytes = *connection.out;
    const ssize_t sent = ::send(connection.socket.get(), bytes.data() + connection.sent,
                                bytes.size() - connection.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      connection.waits_for_room = errno == EAGAIN;
      return errno == EAGAIN || errno == EINTR;
    }
    connection.sent += static_cast<std::size_t>(sent);
    connection.until_ms = now_ms() + kPatienceMs;
    if (connection.sent < bytes.size()) continue;
    connection.out = nullptr;
    if (!connection.streams) {
      ::shutdown(connection.socket.get(), SHUT_WR);
      return false;
    }
  }
  if (connection.streams) connection.until_ms = now_ms() + kPatienceMs;
  return true;
}

}  // namespace mrc::tool::view_tool
