// The sockets of one plane: one to receive, one for each source port to send from.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "nic/io/udp/udp_socket.h"
#include "node/config.h"
#include "node/node_state_files.h"
#include "os/descriptor.h"

namespace mrc::nic {

// Source ports in use on any plane, so that substitutes are new to all of them.
using UsedPorts = std::bitset<65'536>;

struct UdpPlaneOptions {
  std::uint16_t receive_port = 0;    // of this process
  bool shared = false;               // with other processes
  std::uint16_t first_reserved = 0;  // receive ports of all processes: not to be sent from
  std::uint16_t last_reserved = 0;
  std::uint8_t traffic_byte = 0;
  unsigned max_send_sockets = 0;
};

class UdpPlane {
 public:
  struct SendSocket {
    os::Descriptor socket;
    std::uint16_t source_port = 0;  // 0: nobody has this position
    bool watched = false;           // known to epoll
    std::vector<std::uint16_t> flow_labels;
  };

  explicit UdpPlane(const node::PlaneConfig& config) : config_(config) {}

  // Binds the receive socket, on a plane that has an address. EADDRINUSE: another process has that
  // number.
  int open(const UdpPlaneOptions& options);
  // Leaves all sockets and binds them again at a new address, or at the same. Send sockets keep
  // their position; what cannot be bound is left without a socket and refused when used.
  int rebind(const wire::IpAddress& address, unsigned prefix_bits);

  // The entropy that packets of this path really carry: the one wished for where the source port
  // and the flow label are ours to use, another one otherwise, which no other wish has as long as
  // there are sockets left for it. IPv4 has no flow label: of wishes with one low half all but the
  // first get a source port that is free.
  Result<std::uint32_t> prepare_path(std::uint32_t entropy, UsedPorts& used);
  // Closes what only paths use that carry none of these. True when a socket was among it: its
  // position will be that of another.
  bool keep_paths(const std::set<std::uint32_t>& carried);
  // The socket whose source port is the low half of `entropy`, or one that stands in for it.
  // Opens the first one where there is none yet; -1 when that fails.
  int find_send_socket(std::uint32_t entropy, UsedPorts& used);
  // The flow label packets of that socket may carry for this entropy: 0 where the kernel refused.
  std::uint16_t flow_label(unsigned socket, std::uint32_t entropy) const;

  const node::PlaneConfig& config() const { return config_; }
  int receive_socket() const { return receive_.get(); }
  std::span<SendSocket> send_sockets() { return sends_; }
  unsigned scope() const { return scope_; }
  void set_scope(unsigned interface_index) { scope_ = interface_index; }

  bool blocked = false;        // no room in a send buffer
  bool too_small = false;      // its interface came with too small an MTU, and that is told
  bool segmentation = true;    // the kernel takes many segments in one call
  std::uint32_t overflow = 0;  // last reading of the kernel's count for the receive socket

 private:
  bool is_reserved(std::uint16_t port) const;
  int find_port(std::uint16_t port) const;
  bool has_room() const { return open_sends_ < options_.max_send_sockets; }
  std::uint16_t free_position();
  int stand_in(std::uint16_t port) const;
  int add_socket(std::uint16_t port, UsedPorts& used);
  int add_substitute(std::uint32_t wish, UsedPorts& used);
  int socket_for(std::uint16_t port, UsedPorts& used);
  std::uint32_t carried_by(SendSocket& send, std::uint16_t label) const;

  node::PlaneConfig config_;
  UdpPlaneOptions options_;
  unsigned scope_ = 0;
  node::node_files::LifeDescriptor receive_;  // what comes is for the process that made it
  std::vector<SendSocket> sends_;
  unsigned open_sends_ = 0;                                // of these, that somebody has
  std::map<std::uint16_t, std::uint16_t> socket_of_port_;  // wished and real ports -> position
  std::map<std::uint32_t, std::uint32_t> paths_;           // wished -> carried entropy
  std::set<std::uint32_t> carried_;                        // by any of them
};

}  // namespace mrc::nic
