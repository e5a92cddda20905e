// From a batch of datagrams to system calls, as few as the kernel allows, and what to do when it
// refuses.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ring.h"
#include "nic/io/backend.h"
#include "nic/io/udp/udp_batch.h"
#include "nic/io/udp/udp_plane.h"

namespace mrc::nic {

class UdpTransmitter {
 public:
  UdpTransmitter(std::vector<UdpPlane>& planes, int epoll, std::size_t plane_count,
                 BackendCounters& counters, std::uint8_t default_traffic_byte);

  // Sends everything. A datagram that finds no room is kept, with its payload copied, and its plane
  // is blocked until on_writable(); others that the kernel refuses are counted and forgotten.
  void send_all(UdpBatch& batch);
  // A blocked plane may go on.
  void on_writable(unsigned plane);
  // Forgets what a plane had kept, because its sockets are gone.
  void drop_kept(unsigned plane);

  // Whether a refusal since the last call looked like a lost link, address or route.
  bool take_suspicion();

 private:
  // What a blocked plane has kept, in order. It takes no memory when it is needed: the room behind
  // what was sent meanwhile is used again when all of it is gone.
  struct Kept {
    UdpMessage message;
    std::size_t at = 0;  // in `bytes`
  };
  struct KeptOfPlane {
    KeptOfPlane();
    Ring<Kept> messages;
    std::unique_ptr<std::byte[]> bytes;
    std::size_t used = 0;
  };
  // Bytes of one message's control part: type of service and segment size.
  struct alignas(cmsghdr) Control {
    std::array<std::byte, CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(std::uint16_t))> bytes;
  };

  void fill_header(const UdpMessage& message, std::span<iovec> pieces, Control& control,
                   msghdr& header) const;
  int send_one(const UdpMessage& message, std::span<iovec> pieces);
  std::size_t send_run(UdpBatch& batch, std::span<const UdpMessage> run);
  void send_or_settle(UdpBatch& batch, const UdpMessage& message);
  int send_split(const UdpMessage& message, std::span<iovec> pieces);
  int send_with_fallback(const UdpMessage& message, std::span<iovec> pieces);
  void keep(const UdpMessage& message, std::span<const iovec> pieces);
  void watch_writable(unsigned plane, unsigned socket);
  void count_refused(const UdpMessage& message, int error);

  std::vector<UdpPlane>& planes_;
  int epoll_;
  BackendCounters& counters_;
  std::uint8_t default_traffic_byte_;
  bool suspicion_ = false;
  std::vector<KeptOfPlane> kept_;  // per plane
  std::unique_ptr<iovec[]> cut_;   // pieces of one segment
  std::unique_ptr<mmsghdr[]> headers_;
  std::unique_ptr<Control[]> controls_;
};

}  // namespace mrc::nic
