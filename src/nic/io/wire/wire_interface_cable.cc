#include "nic/io/wire/wire_interface_cable.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "wire/frame.h"
#include "wire/ip_header.h"

namespace mrc::nic {
namespace {

constexpr int kReceiveBytes = 8 << 20;
constexpr std::uint32_t kWholeFrame = 0x4'0000;

// Offsets in a frame, from its Ethernet header.
constexpr std::uint32_t kIpAt = wire::kEthernetHeaderLength;
constexpr std::uint32_t kIpv4ProtocolAt = kIpAt + 9;
constexpr std::uint32_t kIpv6NextAt = 6;  // from the IPv6 header
constexpr std::uint32_t kPortAt = 2;      // from the UDP header
constexpr std::uint32_t kIpv4Length = 20;
constexpr std::uint32_t kIpv6Length = wire::kIpv6HeaderLength;

sock_filter load_byte(std::uint32_t at) { return BPF_STMT(BPF_LD | BPF_B | BPF_ABS, at); }
sock_filter load_half(std::uint32_t at) { return BPF_STMT(BPF_LD | BPF_H | BPF_ABS, at); }
sock_filter jump_if_equal(std::uint32_t value, std::uint8_t yes, std::uint8_t no) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no);
}
sock_filter give(std::uint32_t bytes) { return BPF_STMT(BPF_RET | BPF_K, bytes); }

bool attach_filter(int socket, std::span<sock_filter> program) {
  const sock_fprog filter{.len = static_cast<unsigned short>(program.size()),
                          .filter = program.data()};
  return ::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) == 0;
}

// UDP to our port, plain.
bool filter_ipv4(int socket, std::uint16_t port) {
  std::array<sock_filter, 6> program{load_byte(kIpv4ProtocolAt),
                                     jump_if_equal(wire::kNextHeaderUdp, 0, 3),
                                     load_half(kIpAt + kIpv4Length + kPortAt),
                                     jump_if_equal(port, 0, 1),
                                     give(kWholeFrame),
                                     give(0)};
  return attach_filter(socket, program);
}

// UDP to our port, plain, in a tunnel, or in one with a routing header.
bool filter_ipv6(int socket, std::uint16_t port) {
  constexpr std::uint32_t kPlain = kIpAt + kIpv6Length;
  constexpr std::uint32_t kTunnel = kPlain + kIpv6Length;
  constexpr std::uint32_t kRouted = kTunnel + wire::kSrhLength;
  const auto udp_header_at = [](std::uint32_t offset) -> sock_filter {
    return BPF_STMT(BPF_LDX | BPF_IMM, offset);
  };
  const auto skip = [](std::uint32_t count) -> sock_filter {
    return BPF_STMT(BPF_JMP | BPF_JA, count);
  };
  std::array<sock_filter, 13> program{load_byte(kIpAt + kIpv6NextAt),
                                      jump_if_equal(wire::kNextHeaderIpv6, 2, 0),
                                      jump_if_equal(wire::kNextHeaderRouting, 3, 0),
                                      jump_if_equal(wire::kNextHeaderUdp, 4, 8),
                                      udp_header_at(kTunnel),
                                      skip(3),
                                      udp_header_at(kRouted),
                                      skip(1),
                                      udp_header_at(kPlain),
                                      BPF_STMT(BPF_LD | BPF_H | BPF_IND, kPortAt),
                                      jump_if_equal(port, 0, 1),
                                      give(kWholeFrame),
                                      give(0)};
  return attach_filter(socket, program);
}

void set_buffer(int socket, int forced, int asked, int bytes) {
  // Beyond the system's limit only the privileged get what they ask for.
  if (::setsockopt(socket, SOL_SOCKET, forced, &bytes, sizeof(bytes)) == 0) return;
  ::setsockopt(socket, SOL_SOCKET, asked, &bytes, sizeof(bytes));
}

}  // namespace

std::string WireInterfaceCable::open(InterfaceCableOptions options) {
  options_ = std::move(options);
  if (attach()) return {};
  if (errno == EPERM || errno == EACCES) {
    return "interface " + options_.interface +
           " as a cable needs the right to raw sockets (CAP_NET_RAW); run as root, or use backend "
           "\"udp\"";
  }
  return "interface " + options_.interface + ": " + std::strerror(errno);
}

bool WireInterfaceCable::attach() {
  const unsigned index = ::if_nametoindex(options_.interface.c_str());
  if (index == 0) return false;
  if (index == index_) return true;
  const int protocol = htons(options_.is_v4 ? ETH_P_IP : ETH_P_IPV6);
  // Bound before it has a protocol, so that nothing of other interfaces comes in.
  os::Descriptor socket(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return false;
  const bool filtered = options_.is_v4 ? filter_ipv4(socket.get(), options_.udp_port)
                                       : filter_ipv6(socket.get(), options_.udp_port);
  if (!filtered) return false;
  set_buffer(socket.get(), SO_RCVBUFFORCE, SO_RCVBUF, kReceiveBytes);
  set_buffer(socket.get(), SO_SNDBUFFORCE, SO_SNDBUF, static_cast<int>(options_.send_buffer_bytes));
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = static_cast<unsigned short>(protocol);
  address.sll_ifindex = static_cast<int>(index);
  const void* const untyped = &address;
  if (::bind(socket.get(), static_cast<const sockaddr*>(untyped), sizeof(address)) != 0) {
    return false;
  }
  socket_ = std::move(socket);
  index_ = index;
  return true;
}

bool WireInterfaceCable::has_carrier() const {
  ifreq request{};
  std::memcpy(request.ifr_name, options_.interface.c_str(),
              std::min(options_.interface.size(), sizeof(request.ifr_name) - 1));
  if (!socket_.valid() || ::ioctl(socket_.get(), SIOCGIFFLAGS, &request) != 0) return false;
  constexpr int kUsable = IFF_UP | IFF_RUNNING;
  return (request.ifr_flags & kUsable) == kUsable;
}

bool WireInterfaceCable::advance(TimeNs) {
  if (up_) return false;
  up_ = attach() && has_carrier();
  if (!up_) forget_error();
  return up_;
}

bool WireInterfaceCable::lost() {
  return up_ && (!has_carrier() || ::if_nametoindex(options_.interface.c_str()) != index_);
}

void WireInterfaceCable::take_down(TimeNs) {
  up_ = false;
  forget_error();
}

// What the kernel has to say about a link that is down would keep the descriptor awake.
void WireInterfaceCable::forget_error() {
  int error = 0;
  socklen_t length = sizeof(error);
  ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
}

}  // namespace mrc::nic
