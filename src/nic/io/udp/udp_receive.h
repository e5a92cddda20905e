// From receive sockets to transport parts: batches, segments, sources, ICRC.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "nic/io/backend.h"
#include "nic/io/plane_map.h"
#include "nic/io/security.h"
#include "nic/io/udp/udp_icrc.h"
#include "nic/io/udp/udp_neighbours.h"
#include "nic/io/udp/udp_plane.h"
#include "os/socket_address.h"

namespace mrc::nic {

class UdpReceiver {
 public:
  // `neighbours`: who shares the port; null when nobody does.
  UdpReceiver(const node::DeviceConfig& config, std::uint16_t udp_port, UdpNeighbours* neighbours,
              Security& security, BackendCounters& counters);

  // Reads what waits at a plane's socket, at most about `budget` packets. Returns how many, and in
  // `emptied` whether nothing is left.
  unsigned receive(UdpPlane& plane, PortId port, const PlaneMap& map, Receiver& receiver,
                   unsigned budget, bool& emptied);
  // What neighbours have handed to us, at most `budget` datagrams.
  unsigned receive_handed(std::span<UdpPlane> planes, const PlaneMap& map, Receiver& receiver,
                          unsigned budget);
  // After addresses changed.
  void forget_sources();

 private:
  // A sender as seen on a plane; what is known about it follows from its address alone.
  struct Source {
    os::SocketAddress from;  // length 0: empty
    PortId port = kNoPort;
    bool known = false;  // `gid` is set
    wire::IpAddress gid;
    FlowAddresses addresses;
    IcrcPrefixes prefixes;
  };
  // What the kernel tells beside the data.
  struct Notes {
    std::uint8_t traffic_byte = 0;
    std::uint16_t segment_bytes = 0;  // 0: one datagram
    std::uint16_t flow_label = 0;
    bool has_overflow = false;
    std::uint32_t overflow = 0;
  };
  struct alignas(cmsghdr) Control {
    std::array<std::byte, 4 * CMSG_SPACE(sizeof(std::uint32_t))> bytes;
  };

  void reset_slot(std::size_t index);
  static Notes read_notes(msghdr& header);
  Source& find_source(UdpPlane& plane, PortId port, const PlaneMap& map,
                      const os::SocketAddress& from);
  unsigned take_message(UdpPlane& plane, PortId port, const PlaneMap& map, Receiver& receiver,
                        std::size_t index);
  DropReason check(Source& source, const Notes& notes, std::span<std::byte> bytes,
                   Received& received) const;
  void check_icrc(Source& source, std::span<const std::byte> bytes, Received& received) const;

  wire::DscpMap dscp_;
  bool takes_header_check_;
  std::uint16_t udp_port_;
  UdpNeighbours* neighbours_;
  Security& security_;
  BackendCounters& counters_;
  unsigned slots_in_use_;
  std::unique_ptr<std::byte[]> buffers_;
  std::unique_ptr<mmsghdr[]> headers_;
  std::unique_ptr<iovec[]> pieces_;
  std::unique_ptr<os::SocketAddress[]> names_;
  std::unique_ptr<Control[]> controls_;
  std::unique_ptr<Source[]> sources_;
};

}  // namespace mrc::nic
