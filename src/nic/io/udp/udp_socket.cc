#include "nic/io/udp/udp_socket.h"

#include <linux/filter.h>
#include <netinet/udp.h>

#include <cerrno>
#include <cstring>

#include "nic/io/udp/udp_flow_label.h"
#include "nic/io/udp/udp_neighbours.h"

namespace mrc::nic {
namespace {

// Enough for a round trip of 300 us at 100 Gb/s; the kernel gives less to the unprivileged.
constexpr int kReceiveBufferBytes = 32 << 20;
constexpr int kSendBufferBytes = 8 << 20;

bool set_option(int socket, int level, int name, int value) {
  return ::setsockopt(socket, level, name, &value, sizeof(value)) == 0;
}

void set_buffer(int socket, int forced_name, int name, int bytes) {
  if (!set_option(socket, SOL_SOCKET, forced_name, bytes)) {
    set_option(socket, SOL_SOCKET, name, bytes);
  }
}

// Don't-fragment on every packet, whatever routers claim about the path: the path MTU is ours to
// know. Binding works before the address exists, so that a port can come up later.
void set_common(int socket, bool is_v4) {
  if (is_v4) {
    set_option(socket, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    set_option(socket, IPPROTO_IP, IP_FREEBIND, 1);
  } else {
    set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    set_option(socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
    set_option(socket, IPPROTO_IPV6, IPV6_FREEBIND, 1);
  }
}

void set_receive_options(int socket, bool is_v4) {
  set_buffer(socket, SO_RCVBUFFORCE, SO_RCVBUF, kReceiveBufferBytes);
  set_option(socket, SOL_SOCKET, SO_RXQ_OVFL, 1);
  set_option(socket, SOL_UDP, UDP_GRO, 1);
  if (is_v4) {
    set_option(socket, IPPROTO_IP, IP_RECVTOS, 1);
  } else {
    set_option(socket, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
    set_option(socket, IPPROTO_IPV6, kIpv6FlowInfo, 1);
  }
}

void set_send_options(int socket, bool is_v4, std::uint8_t traffic_class) {
  set_buffer(socket, SO_SNDBUFFORCE, SO_SNDBUF, kSendBufferBytes);
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (is_v4) {
    set_option(socket, IPPROTO_IP, IP_TOS, traffic_class);
  } else {
    set_option(socket, IPPROTO_IPV6, IPV6_TCLASS, traffic_class);
    set_option(socket, IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 0);
    set_option(socket, IPPROTO_IPV6, kIpv6FlowInfoSend, 1);
  }
  // What strangers send to the source port is thrown away in the kernel.
  sock_filter drop_all{};
  drop_all.code = BPF_RET | BPF_K;
  const sock_fprog program{.len = 1, .filter = &drop_all};
  ::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

SocketResult bind_socket(os::Descriptor socket, const os::SocketAddress& at) {
  if (::bind(socket.get(), &at.value.any, at.length) != 0) return {.error = errno};
  return {.socket = std::move(socket)};
}

os::Descriptor create_socket(const os::SocketAddress& at) {
  return os::Descriptor(
      ::socket(at.value.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace

SocketResult open_receive_socket(const os::SocketAddress& at, bool shared) {
  os::Descriptor socket = create_socket(at);
  if (!socket.valid()) return {.error = errno};
  const bool is_v4 = at.value.any.sa_family == AF_INET;
  set_common(socket.get(), is_v4);
  set_receive_options(socket.get(), is_v4);
  if (shared) set_option(socket.get(), SOL_SOCKET, SO_REUSEPORT, 1);
  SocketResult result = bind_socket(std::move(socket), at);
  if (shared && result.error == 0) choose_by_number(result.socket.get());
  return result;
}

SocketResult open_send_socket(const os::SocketAddress& at, std::uint8_t traffic_class) {
  os::Descriptor socket = create_socket(at);
  if (!socket.valid()) return {.error = errno};
  const bool is_v4 = at.value.any.sa_family == AF_INET;
  set_common(socket.get(), is_v4);
  set_send_options(socket.get(), is_v4, traffic_class);
  return bind_socket(std::move(socket), at);
}

bool is_local_address(const os::SocketAddress& at) {
  return bind_socket(create_socket(at), at).error == 0;
}

bool lease_flow_label(int socket, std::uint32_t flow_label) {
  Ipv6FlowLabelRequest request{};
  request.label = htonl(flow_label & kIpv6FlowLabelMask);
  request.action = kFlowLabelGet;
  request.share = kFlowLabelSharedByAll;
  request.flags = kFlowLabelCreate;
  return ::setsockopt(socket, IPPROTO_IPV6, kIpv6FlowLabelManager, &request, sizeof(request)) == 0;
}

void release_flow_label(int socket, std::uint32_t flow_label) {
  Ipv6FlowLabelRequest request{};
  request.label = htonl(flow_label & kIpv6FlowLabelMask);
  request.action = kFlowLabelPut;
  ::setsockopt(socket, IPPROTO_IPV6, kIpv6FlowLabelManager, &request, sizeof(request));
}

}  // namespace mrc::nic
