// Sockets of the UDP back end, with every option they need.
#pragma once

#include <cstdint>

#include "nic/backend_addresses.h"
#include "nic/backend_descriptor.h"

namespace mrc::nic {

struct SocketResult {
  Descriptor socket;
  int error = 0;  // errno when there is none
};

// Bound to exactly that address and port, alone: nobody else can take it, EADDRINUSE if somebody
// has. Delivers type of service, segment size (GRO), flow label and overflow count with the data.
SocketResult open_receive_socket(const SocketAddress& at);

// Bound to that address and source port, which other send sockets may have too. Receives nothing.
// `traffic_class` is what packets carry unless a control message says otherwise.
SocketResult open_send_socket(const SocketAddress& at, std::uint8_t traffic_class);

// Whether an address is one of this machine's, found out by trying.
bool is_local_address(const SocketAddress& at);

// Allows a send socket to use that IPv6 flow label. False where the kernel does not.
bool lease_flow_label(int socket, std::uint32_t flow_label);

}  // namespace mrc::nic
