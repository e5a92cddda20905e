#include "commands/doctor/size_probe.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <vector>

#include "base/types.h"
#include "os/clock.h"
#include "os/socket_address.h"

namespace mrc::tool::doctor {
namespace {

constexpr unsigned kUdpHeader = 8;
constexpr unsigned kIpv4Header = 20;
constexpr unsigned kIpv6Header = 40;
constexpr unsigned kTries = 3;
constexpr DurationNs kPatienceNs = 200 * kMillisecondNs;
constexpr unsigned kMostAnswers = 64;
// What interfaces and switches are usually set to, and what tunnels leave of it.
constexpr std::array<unsigned, 12> kUsual = {9'000, 8'950, 8'192, 4'352, 4'200, 2'048,
                                             1'500, 1'450, 1'400, 1'280, 1'000, 576};

// What a datagram begins with.
struct Head {
  std::uint64_t token = 0;
  std::uint64_t number = 0;
};

os::Descriptor bound_socket(const wire::IpAddress& address) {
  os::Descriptor socket(
      ::socket(address.is_v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const os::SocketAddress local = os::make_socket_address(address, 0, 0);
  // Not cut by us either, whatever the kernel believes of the way.
  static_assert(IP_PMTUDISC_PROBE == IPV6_PMTUDISC_PROBE);
  const int dont_fragment = IP_PMTUDISC_PROBE;
  const int level = address.is_v4 ? IPPROTO_IP : IPPROTO_IPV6;
  const int name = address.is_v4 ? IP_MTU_DISCOVER : IPV6_MTU_DISCOVER;
  if (!socket.valid() ||
      ::setsockopt(socket.get(), level, name, &dont_fragment, sizeof(dont_fragment)) != 0 ||
      ::bind(socket.get(), &local.value.any, local.length) != 0)
    socket.close();
  return socket;
}

}  // namespace

SizeEcho::SizeEcho(const wire::IpAddress& address, std::uint64_t token)
    : socket_(bound_socket(address)), token_(token) {}

std::uint16_t SizeEcho::port() const {
  os::SocketAddress own;
  own.length = sizeof(own.value);
  if (::getsockname(socket_.get(), &own.value.any, &own.length) != 0) return 0;
  return os::udp_port_of(own);
}

void SizeEcho::answer() {
  std::vector<std::byte> bytes(kLargestPacket);
  for (unsigned i = 0; i < kMostAnswers; ++i) {
    os::SocketAddress from;
    from.length = sizeof(from.value);
    const ssize_t got =
        ::recvfrom(socket_.get(), bytes.data(), bytes.size(), 0, &from.value.any, &from.length);
    if (got < 0) return;
    Head head;
    if (static_cast<std::size_t>(got) < sizeof(head)) continue;
    std::memcpy(&head, bytes.data(), sizeof(head));
    if (head.token != token_) continue;
    ::sendto(socket_.get(), bytes.data(), static_cast<std::size_t>(got), 0, &from.value.any,
             from.length);
  }
}

SizeProbe::SizeProbe(const wire::IpAddress& from, const wire::IpAddress& to, std::uint16_t port,
                     std::uint64_t token)
    : socket_(bound_socket(from)),
      token_(token),
      headers_(kUdpHeader + (from.is_v4 ? kIpv4Header : kIpv6Header)) {
  const os::SocketAddress there = os::make_socket_address(to, port, 0);
  if (!socket_.valid() || ::connect(socket_.get(), &there.value.any, there.length) != 0)
    socket_.close();
}

bool SizeProbe::passes(unsigned packet_bytes) {
  if (!socket_.valid() || packet_bytes < headers_ + sizeof(Head)) return false;
  for (unsigned i = 0; i < kTries; ++i)
    if (ask(packet_bytes - headers_, ++asked_)) return true;
  return false;
}

unsigned SizeProbe::largest_below(unsigned packet_bytes) {
  for (const unsigned size : kUsual)
    if (size < packet_bytes && passes(size)) return size;
  return 0;
}

bool SizeProbe::ask(std::size_t payload_bytes, std::uint64_t number) {
  std::vector<std::byte> bytes(payload_bytes);
  const Head head{.token = token_, .number = number};
  std::memcpy(bytes.data(), &head, sizeof(head));
  if (::send(socket_.get(), bytes.data(), bytes.size(), 0) < 0) return false;
  const TimeNs end = os::monotonic_now() + kPatienceNs;
  for (TimeNs now = os::monotonic_now(); now < end; now = os::monotonic_now()) {
    pollfd entry{socket_.get(), POLLIN, 0};
    if (::poll(&entry, 1, static_cast<int>((end - now) / kMillisecondNs) + 1) <= 0) continue;
    std::vector<std::byte> answer(kLargestPacket);
    const ssize_t got = ::recv(socket_.get(), answer.data(), answer.size(), 0);
    if (got < 0) return false;  // refused on the way
    if (static_cast<std::size_t>(got) != payload_bytes) continue;
    Head theirs;
    std::memcpy(&theirs, answer.data(), sizeof(theirs));
    if (theirs.token == token_ && theirs.number == number) return true;
  }
  return false;
}

}  // namespace mrc::tool::doctor
