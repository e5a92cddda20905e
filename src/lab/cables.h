// The host ends of a lab's cables: one listening unix socket (SOCK_SEQPACKET, one frame a message)
// for each host and plane, to which the software NIC's wire back end connects.
//
// A port without carrier has no socket: its connections are closed and its name is gone, which is
// what the NIC takes for a dead cable. Several processes of one host may connect to one port; a
// frame for the host goes to each of them.
//
// What a host sends is read no faster than its port carries it, so a host that is too fast finds
// its socket full. A host that does not read loses frames, as a NIC without buffers does.
//
// Not thread safe. Descriptors are CLOEXEC and never block.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lab/frame_socket.h"
#include "lab/host_ports.h"
#include "os/descriptor.h"

namespace mrc::lab {

class Cables final : public HostPorts {
 public:
  // Sockets are `directory`/<host>.<plane>. Throws InputError when that is too long for a socket's
  // name, std::system_error when the system refuses.
  Cables(const fabric::Topology& topology, FramePool& pool, std::string directory);
  ~Cables() override;
  Cables(const Cables&) = delete;
  Cables& operator=(const Cables&) = delete;

  static std::string socket_path(const std::string& directory, unsigned plane, unsigned host);

  int descriptor() const override { return epoll_.get(); }
  // Takes new connections as well.
  void poll() override;
  void read(Picoseconds now) override;
  void flush() override;
  bool can_read() const override;
  // Opens or closes the port.
  void set_carrier(unsigned plane, unsigned host, bool up) override;
  unsigned connections(unsigned plane, unsigned host) const override;

  bool deliver(unsigned plane, unsigned host, FrameId frame) override;

 private:
  struct Connection {
    os::Descriptor socket;
    unsigned port = 0;
    bool readable = true;
    bool backlogged = false;  // was not read to the end, since its port was busy
    std::vector<FrameId> out;
  };
  struct Port {
    os::Descriptor listener;
    std::vector<std::uint32_t> connections;
  };

  unsigned port_number(unsigned plane, unsigned host) const { return host * planes_ + plane; }
  void open_port(unsigned port);
  void accept_all(unsigned port);
  void read_port(std::uint32_t number, Picoseconds now);
  FrameBatch read_some(Connection& connection, Picoseconds now);
  bool has_room(const Connection& connection) const;
  void send_out(std::uint32_t number);
  void close_connection(std::uint32_t number);
  void watch(int descriptor, std::uint32_t events, std::uint64_t tag);

  unsigned planes_;
  FramePool* pool_;
  std::string directory_;
  os::Descriptor epoll_;
  std::vector<Port> ports_;
  std::map<std::uint32_t, Connection> connections_;  // numbers are not used again
  std::uint32_t next_number_ = 0;
};

}  // namespace mrc::lab
