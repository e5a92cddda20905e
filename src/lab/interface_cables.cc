#include "lab/interface_cables.h"

#include <net/ethernet.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "lab/frame_socket.h"
#include "wire/ip_header.h"

namespace mrc::lab {
namespace {

constexpr int kReceiveBytes = 8 << 20;
constexpr std::size_t kNextHeaderAt = wire::kEthernetHeaderLength + 6;

// The hosts' kernels look for their neighbours on the same interfaces; there are none.
bool is_for_the_fabric(std::span<const std::byte> frame) {
  if (frame.size() <= kNextHeaderAt) return true;
  const auto next = static_cast<std::uint8_t>(frame[kNextHeaderAt]);
  return next == wire::kNextHeaderUdp || next == wire::kNextHeaderIpv6 ||
         next == wire::kNextHeaderRouting;
}

}  // namespace

InterfaceCables::InterfaceCables(const fabric::Routing& routing, FramePool& pool,
                                 const std::string& prefix)
    : planes_(routing.topology().planes()),
      pool_(&pool),
      world_(routing, prefix, SwitchKind::kNamespace),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      ports_(std::size_t{routing.topology().hosts()} * planes_) {
  for (unsigned number = 0; number < ports_.size(); ++number) {
    const fabric::Topology& topology = routing.topology();
    const CableEnd end = plan().home_end(topology.host_down(number % planes_, number / planes_));
    Port& port = ports_[number];
    port.socket = world_.space(end.name_space).packet_socket(end.port, ETH_P_IPV6);
    ::setsockopt(port.socket.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBytes,
                 sizeof(kReceiveBytes));
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    event.data.u32 = number;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, port.socket.get(), &event);
  }
}

InterfaceCables::~InterfaceCables() {
  for (const Port& port : ports_)
    for (const FrameId frame : port.out)
      pool_->give_back(frame);
}

void InterfaceCables::poll() {
  std::array<epoll_event, 64> events;
  int count = 0;
  do {
    count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
    for (int i = 0; i < count; ++i)
      ports_[events[static_cast<std::size_t>(i)].data.u32].readable = true;
  } while (count == static_cast<int>(events.size()));
}

bool InterfaceCables::can_read() const {
  return std::any_of(ports_.begin(), ports_.end(), [](const Port& port) { return port.readable; });
}

void InterfaceCables::read(Picoseconds now) {
  for (unsigned number = 0; number < ports_.size(); ++number) {
    if (ports_[number].readable) read_port(number, now);
  }
}

// One batch, so that every port gets its turn. An interface that was down says so once, and the
// socket goes on when it is back.
void InterfaceCables::read_port(unsigned number, Picoseconds now) {
  Port& port = ports_[number];
  const FrameBatch batch = receive_frames(port.socket.get(), *pool_);
  const unsigned plane = number % planes_;
  const unsigned host = number / planes_;
  for (unsigned i = 0; i < batch.count; ++i) {
    const FrameId frame = batch.entries[i].frame;
    if (batch.entries[i].truncated) {
      network().refuse(plane, host, frame);
    } else if (is_for_the_fabric(pool_->bytes(frame))) {
      network().send(now, now, plane, host, frame);
    } else {
      pool_->give_back(frame);
    }
  }
  port.readable = batch.more || batch.closed;
}

bool InterfaceCables::deliver(unsigned plane, unsigned host, FrameId frame) {
  Port& port = ports_[std::size_t{host} * planes_ + plane];
  if (!port.up) return false;
  port.out.push_back(frame);
  return true;
}

void InterfaceCables::flush() {
  for (unsigned number = 0; number < ports_.size(); ++number) {
    Port& port = ports_[number];
    if (port.out.empty()) continue;
    bool closed = false;
    const std::size_t done = send_frames(port.socket.get(), *pool_, port.out, closed);
    const LinkId link = network().topology().host_down(number % planes_, number / planes_);
    for (std::size_t i = done; i < port.out.size(); ++i)
      network().count_host_drop(link);
    for (const FrameId frame : port.out)
      pool_->give_back(frame);
    port.out.clear();
  }
}

void InterfaceCables::set_carrier(unsigned plane, unsigned host, bool up) {
  Port& port = ports_[std::size_t{host} * planes_ + plane];
  if (port.up == up) return;
  port.up = up;
  const CableEnd end = plan().home_end(network().topology().host_down(plane, host));
  world_.space(end.name_space).set_up(end.port, up);
}

}  // namespace mrc::lab
