#include "lab/cables.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "fabric/input_error.h"

namespace mrc::lab {
namespace {

constexpr int kBacklog = 16;
constexpr std::size_t kMaxConnectionsPerPort = 256;
constexpr int kSendBufferBytes = 4 << 20;
constexpr std::uint64_t kListenerTag = std::uint64_t{1} << 32;
// A port that had frames to wait for may make up for so much time in which nobody ran.
constexpr Picoseconds kCatchUpPs = 5'000'000'000;

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_un socket_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    throw fabric::InputError(
        "the name of a socket has at most 107 characters, choose a shorter "
        "directory: " +
        path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

}  // namespace

std::string Cables::socket_path(const std::string& directory, unsigned plane, unsigned host) {
  return directory + "/" + std::to_string(host) + "." + std::to_string(plane);
}

Cables::Cables(const fabric::Topology& topology, FramePool& pool, std::string directory)
    : planes_(topology.planes()),
      pool_(&pool),
      directory_(std::move(directory)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      ports_(std::size_t{topology.hosts()} * topology.planes()) {
  if (!epoll_.valid()) fail("epoll");
  for (unsigned port = 0; port < ports_.size(); ++port)
    open_port(port);
}

Cables::~Cables() {
  for (auto& [number, connection] : connections_)
    for (const FrameId frame : connection.out)
      pool_->give_back(frame);
  for (unsigned port = 0; port < ports_.size(); ++port)
    ::unlink(socket_path(directory_, port % planes_, port / planes_).c_str());
}

void Cables::watch(int descriptor, std::uint32_t events, std::uint64_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) fail("epoll_ctl");
}

void Cables::open_port(unsigned port) {
  const std::string path = socket_path(directory_, port % planes_, port / planes_);
  const sockaddr_un address = socket_address(path);
  os::Descriptor listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) fail("socket");
  ::unlink(path.c_str());
  const void* const raw = &address;
  if (::bind(listener.get(), static_cast<const sockaddr*>(raw), sizeof(address)) != 0 ||
      ::listen(listener.get(), kBacklog) != 0) {
    fail(path);
  }
  watch(listener.get(), EPOLLIN, kListenerTag | port);
  ports_[port].listener = std::move(listener);
}

void Cables::set_carrier(unsigned plane, unsigned host, bool up) {
  const unsigned number = port_number(plane, host);
  Port& port = ports_[number];
  if (up == port.listener.valid()) return;
  if (up) {
    open_port(number);
    return;
  }
  ::unlink(socket_path(directory_, plane, host).c_str());
  port.listener.close();
  while (!port.connections.empty())
    close_connection(port.connections.back());
}

unsigned Cables::connections(unsigned plane, unsigned host) const {
  return static_cast<unsigned>(ports_[port_number(plane, host)].connections.size());
}

void Cables::poll() {
  std::array<epoll_event, 64> events;
  for (;;) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t tag = events[static_cast<std::size_t>(i)].data.u64;
      if ((tag & kListenerTag) != 0) {
        accept_all(static_cast<unsigned>(tag & ~kListenerTag));
      } else if (const auto found = connections_.find(static_cast<std::uint32_t>(tag));
                 found != connections_.end()) {
        found->second.readable = true;
      }
    }
    if (count < static_cast<int>(events.size())) return;
  }
}

void Cables::accept_all(unsigned port) {
  for (;;) {
    os::Descriptor socket(
        ::accept4(ports_[port].listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) return;
    if (ports_[port].connections.size() >= kMaxConnectionsPerPort) continue;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes, sizeof(kSendBufferBytes));
    const std::uint32_t number = next_number_++;
    watch(socket.get(), EPOLLIN | EPOLLRDHUP | EPOLLET, number);
    Connection connection;
    connection.socket = std::move(socket);
    connection.port = port;
    connections_.emplace(number, std::move(connection));
    ports_[port].connections.push_back(number);
  }
}

void Cables::close_connection(std::uint32_t number) {
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;
  for (const FrameId frame : found->second.out)
    pool_->give_back(frame);
  std::erase(ports_[found->second.port].connections, number);
  connections_.erase(found);
}

// --- From hosts ---

bool Cables::has_room(const Connection& connection) const {
  const unsigned plane = connection.port % planes_;
  const unsigned host = connection.port / planes_;
  return network().waiting_bytes(plane, host) < network().read_ahead_bytes();
}

bool Cables::can_read() const {
  return std::any_of(connections_.begin(), connections_.end(), [this](const auto& entry) {
    return entry.second.readable && has_room(entry.second);
  });
}

void Cables::read(Picoseconds now) {
  for (auto at = connections_.begin(); at != connections_.end();) {
    const std::uint32_t number = at->first;
    const bool ready = at->second.readable;
    ++at;
    if (ready) read_port(number, now);
  }
}

// One batch, so that every port gets its turn.
void Cables::read_port(std::uint32_t number, Picoseconds now) {
  Connection& connection = connections_.at(number);
  if (!has_room(connection)) {
    connection.backlogged = true;
    return;
  }
  const FrameBatch batch = read_some(connection, now);
  if (batch.closed) {
    close_connection(number);
  } else if (!batch.more) {
    connection.readable = false;
    connection.backlogged = false;
  }
}

FrameBatch Cables::read_some(Connection& connection, Picoseconds now) {
  const FrameBatch batch = receive_frames(connection.socket.get(), *pool_);
  const unsigned plane = connection.port % planes_;
  const unsigned host = connection.port / planes_;
  const Picoseconds earliest = connection.backlogged ? now - kCatchUpPs : now;
  for (unsigned i = 0; i < batch.count; ++i) {
    const FrameBatch::Entry& entry = batch.entries[i];
    if (entry.truncated) {
      network().refuse(plane, host, entry.frame);
    } else {
      network().send(now, earliest, plane, host, entry.frame);
    }
  }
  return batch;
}

// --- To hosts ---

bool Cables::deliver(unsigned plane, unsigned host, FrameId frame) {
  const std::vector<std::uint32_t>& takers = ports_[port_number(plane, host)].connections;
  if (takers.empty()) return false;
  const auto bytes = pool_->bytes(frame);
  for (std::size_t i = 0; i < takers.size(); ++i) {
    FrameId own = frame;
    if (i + 1 < takers.size()) {
      own = pool_->take();
      if (own == kNoFrame) continue;
      std::memcpy(pool_->room(own).data(), bytes.data(), bytes.size());
      pool_->set_length(own, bytes.size());
    }
    Connection& connection = connections_.at(takers[i]);
    connection.out.push_back(own);
  }
  return true;
}

void Cables::flush() {
  for (auto at = connections_.begin(); at != connections_.end();) {
    const std::uint32_t number = at->first;
    const bool waiting = !at->second.out.empty();
    ++at;
    if (waiting) send_out(number);
  }
}

void Cables::send_out(std::uint32_t number) {
  Connection& connection = connections_.at(number);
  bool closed = false;
  const std::size_t done = send_frames(connection.socket.get(), *pool_, connection.out, closed);
  const LinkId link =
      network().topology().host_down(connection.port % planes_, connection.port / planes_);
  for (std::size_t i = done; i < connection.out.size(); ++i)
    network().count_host_drop(link);
  for (const FrameId frame : connection.out)
    pool_->give_back(frame);
  connection.out.clear();
  if (closed) close_connection(number);
}

}  // namespace mrc::lab
