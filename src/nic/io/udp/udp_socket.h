// Sockets of the UDP back end, with every option they need.
#pragma once

#include <cstdint>

#include "os/descriptor.h"
#include "os/socket_address.h"

namespace mrc::nic {

struct SocketResult {
  os::Descriptor socket;
  int error = 0;  // errno when there is none
};

// Bound to exactly that address and port, alone: nobody else can take it, EADDRINUSE if somebody
// has; or together with others of this user who share it (nic/io/udp/udp_neighbours.h). Delivers
// type of service, segment size (GRO), flow label and overflow count with the data.
SocketResult open_receive_socket(const os::SocketAddress& at, bool shared);

// Bound to that address and source port, which other send sockets may have too. Receives nothing.
// `traffic_class` is what packets carry unless a control message says otherwise.
SocketResult open_send_socket(const os::SocketAddress& at, std::uint8_t traffic_class);

// Whether an address is one of this machine's, found out by trying.
bool is_local_address(const os::SocketAddress& at);

// Allows a send socket to use that IPv6 flow label. False where the kernel does not.
bool lease_flow_label(int socket, std::uint32_t flow_label);
// Gives it back; the kernel has 4,096 of them for everybody.
void release_flow_label(int socket, std::uint32_t flow_label);

}  // namespace mrc::nic
