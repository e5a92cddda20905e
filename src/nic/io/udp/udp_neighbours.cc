#include "nic/io/udp/udp_neighbours.h"

#include <linux/filter.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "os/clock.h"
#include "os/host_bug.h"
#include "wire/codec.h"
#include "wire/packet.h"

namespace mrc::nic {
namespace {

constexpr unsigned kMaxProcesses = 256;
constexpr DurationNs kTryAgain = 100 * kMillisecondNs;
constexpr int kLinkBytes = 8 << 20;  // what may wait for a neighbour
constexpr std::size_t kMaxLinks = 512;
constexpr unsigned kMaxRounds = 64;
constexpr unsigned kMostAccepted = 8;  // at a time, whoever comes
constexpr std::size_t kMaxDatagram = 65'536;
// Of the BTH, at the beginning of a datagram.
constexpr std::size_t kNumberOffset = 5;  // top byte of the destination
constexpr std::size_t kOpOffset = wire::kBthLength + 1;

// In front of a datagram that is handed on. Both ends are of this machine.
struct Note {
  std::uint32_t magic;
  std::uint8_t port;
  std::uint8_t traffic_byte;
  std::uint16_t flow_label;
  std::uint32_t length;  // of the address
  decltype(os::SocketAddress::value) from;
};
constexpr std::uint32_t kMagic = 0x4D52'4331;

struct UnixAddress {
  sockaddr_un value{};
  socklen_t length = 0;
};

UnixAddress abstract_address(const std::string& name) {
  UnixAddress address;
  address.value.sun_family = AF_UNIX;
  std::memcpy(address.value.sun_path + 1, name.data(), name.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

const sockaddr* as_any(const UnixAddress& address) {
  const void* const untyped = &address.value;
  return static_cast<const sockaddr*>(untyped);
}

unsigned byte_at(std::span<const std::byte> datagram, std::size_t at) {
  return at < datagram.size() ? std::to_integer<unsigned>(datagram[at]) : 0;
}

bool is_for_endpoint(std::span<const std::byte> datagram) {
  return byte_at(datagram, kNumberOffset) == 0 && byte_at(datagram, kNumberOffset + 1) == 0 &&
         byte_at(datagram, kNumberOffset + 2) == static_cast<unsigned>(kEndpointQp);
}

// An answer, or news about ports.
bool concerns_everybody(std::span<const std::byte> datagram) {
  const auto opcode = static_cast<wire::Opcode>(byte_at(datagram, 0));
  if (opcode == wire::Opcode::kEndpointResponse) return true;
  const auto op = static_cast<wire::EndpointOp>(byte_at(datagram, kOpOffset) & 0x03);
  return opcode == wire::Opcode::kEndpointRequest && op == wire::EndpointOp::kPortStatusUpdate;
}

// Whether whoever is at the other end may bind our UDP port too.
bool is_trusted(int link) {
  if (MRC_HOST_BUG(kHeirsAreNeighbours)) return true;
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (::getsockopt(link, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

bool watch(int epoll, int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

}  // namespace

bool choose_by_number(int socket) {
  // What is for the endpoint goes to no position: the kernel takes one by its hash then, so that
  // one process that does not read keeps repeats on other paths from nobody.
  constexpr std::uint32_t kNumberMask = 0x00FF'FFFF;
  constexpr std::uint32_t kNoPosition = 0xFFFF'FFFF;
  std::array<sock_filter, 6> code{};
  code[0] = {.code = BPF_LD | BPF_W | BPF_ABS, .jt = 0, .jf = 0, .k = kNumberOffset - 1};
  code[1] = {.code = BPF_ALU | BPF_AND | BPF_K, .jt = 0, .jf = 0, .k = kNumberMask};
  code[2] = {.code = BPF_JMP | BPF_JEQ | BPF_K,
             .jt = 2,
             .jf = 0,
             .k = static_cast<std::uint32_t>(kEndpointQp)};
  code[3] = {.code = BPF_ALU | BPF_RSH | BPF_K, .jt = 0, .jf = 0, .k = 16};
  code[4] = {.code = BPF_RET | BPF_A, .jt = 0, .jf = 0, .k = 0};
  code[5] = {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = kNoPosition};
  const sock_fprog program{.len = static_cast<unsigned short>(code.size()), .filter = code.data()};
  return ::setsockopt(socket, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program)) == 0;
}

// Listening at the address of a number, or connected to it. Invalid with errno when that fails.
UdpNeighbours::Link UdpNeighbours::make_socket(unsigned number, bool listens) const {
  os::Descriptor made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.valid()) return {};
  const UnixAddress address = abstract_address(prefix_ + std::to_string(number));
  const int done = listens ? ::bind(made.get(), as_any(address), address.length)
                           : ::connect(made.get(), as_any(address), address.length);
  const bool ready = done == 0 && (!listens || ::listen(made.get(), kMaxProcesses) == 0);
  if (ready) return Link(std::move(made));
  const int error = errno;
  made.close();
  errno = error;
  return {};
}

void UdpNeighbours::use_address(const node::DeviceConfig& config) {
  prefix_ = "mrc-udp-" + std::string(wire::format_address(config.planes[0].address).view()) + "-" +
            std::to_string(config.udp_port) + "-";
}

int UdpNeighbours::claim(const node::DeviceConfig& config) {
  use_address(config);
  epoll_ = os::Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  buffer_.resize(sizeof(Note) + kMaxDatagram);
  others_.resize(kMaxProcesses);
  for (number_ = 0; number_ < kMaxProcesses; ++number_) {
    listener_ = make_socket(number_, true);
    if (listener_.valid()) {
      return watch(epoll_.get(), listener_.get()) ? static_cast<int>(number_) : -1;
    }
    if (errno != EADDRINUSE) return -1;
  }
  return -1;
}

bool UdpNeighbours::follow(const node::DeviceConfig& config) {
  use_address(config);
  Link fresh = make_socket(number_, true);
  if (!fresh.valid() || !watch(epoll_.get(), fresh.get())) return false;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
  listener_ = std::move(fresh);
  return true;
}

unsigned UdpNeighbours::held_by_strangers() const {
  unsigned count = 0;
  for (unsigned number = 0; number < kMaxProcesses; ++number) {
    const Link link = make_socket(number, false);
    // Who has bound a name without listening is no neighbour either.
    const bool refused = !link.valid() && errno == ECONNREFUSED;
    if (refused || (link.valid() && !is_trusted(link.get()))) ++count;
  }
  return count;
}

bool UdpNeighbours::keep(const DatagramOrigin& origin, std::span<const std::byte> datagram) {
  if (is_for_endpoint(datagram)) {
    if (!concerns_everybody(datagram)) return true;
    for (unsigned number = 0; number < kMaxProcesses; ++number) {
      if (number != number_) hand_to(number, origin, datagram);
    }
    return true;
  }
  const unsigned owner = byte_at(datagram, kNumberOffset);
  if (owner == number_) return true;
  hand_to(owner, origin, datagram);
  return false;
}

// Who is not there is asked ten times a second at most, whatever strangers send.
bool UdpNeighbours::reach(unsigned number) {
  Neighbour& other = others_[number];
  if (other.link.valid()) return true;
  const TimeNs now = os::monotonic_now();
  if (other.failed_at != 0 && now - other.failed_at < kTryAgain) return false;
  other.link = make_socket(number, false);
  if (other.link.valid() && !is_trusted(other.link.get())) other.link = {};
  other.failed_at = other.link.valid() ? 0 : now;
  if (!other.link.valid()) return false;
  const int bytes = kLinkBytes;
  if (::setsockopt(other.link.get(), SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) != 0)
    ::setsockopt(other.link.get(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
  return true;
}

void UdpNeighbours::hand_to(unsigned number, const DatagramOrigin& origin,
                            std::span<const std::byte> datagram) {
  Note note{};
  note.magic = kMagic;
  note.port = static_cast<std::uint8_t>(origin.port);
  note.traffic_byte = origin.traffic_byte;
  note.flow_label = origin.flow_label;
  note.length = origin.from.length;
  note.from = origin.from.value;
  // The kernel does not write through these pointers.
  auto* const bytes = const_cast<std::byte*>(datagram.data());  // NOLINT
  std::array<iovec, 2> pieces{iovec{.iov_base = &note, .iov_len = sizeof(note)},
                              iovec{.iov_base = bytes, .iov_len = datagram.size()}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  // The first connection may be to a process that has ended; its number may have another now.
  for (int attempt = 0; attempt < 2 && reach(number); ++attempt) {
    const int link = others_[number].link.get();
    if (::sendmsg(link, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return;
    if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) return;  // as on a full wire
    others_[number].link = {};
  }
}

void UdpNeighbours::accept_links() {
  for (unsigned i = 0; i < kMostAccepted; ++i) {
    os::Descriptor link(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!link.valid()) return;
    if (!is_trusted(link.get()) || links_.size() >= kMaxLinks) continue;
    if (watch(epoll_.get(), link.get())) links_.emplace_back(std::move(link));
  }
}

// Taken out first: a child of ours may hold the connection too, and then closing is not enough.
void UdpNeighbours::forget(int link) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, link, nullptr);
  std::erase_if(links_, [&](const Link& each) { return each.get() == link; });
}

// False when nothing usable came.
bool UdpNeighbours::read_link(int link, DatagramOrigin& origin, std::span<std::byte>& datagram) {
  const ssize_t got = ::recv(link, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  if (got <= 0) {
    if (got == 0 || errno != EAGAIN) forget(link);
    return false;
  }
  const auto length = static_cast<std::size_t>(got);
  Note note{};
  if (length <= sizeof(note)) return false;
  std::memcpy(&note, buffer_.data(), sizeof(note));
  if (note.magic != kMagic || note.length > sizeof(note.from)) return false;
  origin.from.value = note.from;
  origin.from.length = static_cast<socklen_t>(note.length);
  origin.port = static_cast<PortId>(note.port);
  origin.traffic_byte = note.traffic_byte;
  origin.flow_label = note.flow_label;
  datagram = std::span<std::byte>(buffer_).subspan(sizeof(note), length - sizeof(note));
  return true;
}

std::span<std::byte> UdpNeighbours::take(DatagramOrigin& origin) {
  std::span<std::byte> datagram;
  epoll_event event{};
  // A round takes a message or a connection, or ends one, unless descriptors are used up.
  for (unsigned round = 0; round < kMaxRounds; ++round) {
    if (::epoll_wait(epoll_.get(), &event, 1, 0) != 1) break;
    if (event.data.fd == listener_.get()) {
      accept_links();
    } else if (read_link(event.data.fd, origin, datagram)) {
      return datagram;
    }
  }
  return {};
}

}  // namespace mrc::nic
