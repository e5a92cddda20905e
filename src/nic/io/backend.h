// Between the engine and the network: packets out, packets in, and which ports work.
//
// A back end belongs to one engine, is driven by one thread at a time (whoever holds the lock of
// that engine) and never blocks. It knows addresses, sockets and frames; it knows nothing of queue
// pairs. There are two: datagrams through UDP sockets (io/udp), and whole frames over cables, unix
// sockets or network interfaces (io/wire). A test may bring its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "core/endpoint.h"
#include "core/ev_profile.h"
#include "core/tx_packet.h"
#include "node/config.h"
#include "seal/stance.h"
#include "wire/ev.h"
#include "wire/frame.h"
#include "wire/ip_address.h"

namespace mrc::nic {

// Several processes of one host may share a device. Each owns a process number: it is the top byte
// of all its queue pair numbers, and the process receives at UDP port `udp_port + number`, or in a
// dialect with one port for all at `udp_port`. The number of the first, and of a lone one, is 0.
// See docs/wire.md.
using ProcessNumber = std::uint8_t;
constexpr ProcessNumber process_of(QpNumber qp) {
  return static_cast<ProcessNumber>(static_cast<std::uint32_t>(qp) >> 16);
}

// Who a packet goes to or comes from. The core sees it as an opaque Address (nic/peer_table.h).
struct PeerName {
  wire::IpAddress gid;  // of the device, whichever plane is used
  ProcessNumber process = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): see IpAddress
  friend constexpr auto operator<=>(const PeerName&, const PeerName&) = default;
};

// Where a dialect has one port for all, nobody is known by process: a peer's numbers are its own.
constexpr PeerName peer_name(const wire::Dialect& dialect, const wire::IpAddress& gid,
                             ProcessNumber process) {
  const bool by_port = dialect.processes == wire::Processes::kByUdpPort;
  return {gid, by_port ? process : ProcessNumber{0}};
}

// One path as a packet needs it.
struct Route {
  PeerName peer;
  PortId port{1};
  std::uint32_t entropy = 0;
  const wire::EvValue* srv6 = nullptr;  // carrier and segment; none: plain addressing
  // Of a packet whose DSCP was asked for; otherwise that of its traffic class.
  std::optional<std::uint8_t> dscp;
  bool peer_takes_header_check = false;  // as it said last, for this queue pair
};

struct Received {
  wire::IpAddress gid;  // of the sender's device
  PortId port{1};
  std::uint32_t entropy = 0;
  bool congestion_experienced = false;
  core::TrimState trim = core::TrimState::kWhole;
  bool icrc_good = true;
  std::span<const std::byte>
      transport;  // BTH to the last pad byte, without ICRC; valid in the call
  // So many packets, this one and those that continue it in a run (wire::continues_run), each
  // `stride` bytes behind the one before.
  unsigned run = 1;
  std::size_t stride = 0;
};

// Takes what a back end received.
class Receiver {
 public:
  virtual ~Receiver() = default;
  virtual void on_received(const Received& received) = 0;
  virtual void on_dropped(DropReason reason) = 0;  // did not get as far as a transport part
};

struct BackendCounters {
  std::uint64_t send_calls = 0;
  std::uint64_t receive_calls = 0;
  std::uint64_t packets_sent = 0;
  std::uint64_t packets_received = 0;
  std::uint64_t header_checked = 0;    // of these, whose check left out the payload
  std::uint64_t send_refused = 0;      // by the kernel: no buffer, no route, link down
  std::uint64_t receive_overflow = 0;  // the kernel had to drop for us (SO_RXQ_OVFL)
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual ProcessNumber process_number() const = 0;
  virtual unsigned port_count() const = 0;
  // Largest payload of a packet that fits every plane's MTU, a multiple of 4 up to 8,192.
  virtual std::uint32_t path_mtu() const = 0;
  virtual std::uint64_t port_bits_per_second() const = 0;

  // What arrives and nobody reads yet has so much room, on all planes together and with what the
  // kernel adds to it.
  virtual std::uint64_t receive_buffer_bytes() const = 0;

  // Ports whose interface is up and has an address. Changes are found by on_wake().
  virtual PortMask link_up() const = 0;
  // Ports that take a packet now.
  virtual PortMask free_ports() const = 0;

  // Makes a path usable and says which entropy its packets will carry on the wire, which may differ
  // from the one wished for (a source port that is not ours to use). Called at set-up only.
  virtual Result<std::uint32_t> prepare_path(PortId port, std::uint32_t entropy) = 0;
  // Of all paths that were prepared only these are needed from now on, by the entropies that their
  // packets carry: what the others hold, a socket each for one, is given back.
  virtual void keep_paths(std::span<const core::EvEntry> /*needed*/) {}

  // The SRv6 carrier of packets of a path to that host; none where the network chooses the way.
  virtual std::optional<wire::IpAddress> carrier_of(PortId /*port*/, const wire::IpAddress& /*gid*/,
                                                    std::uint32_t /*entropy*/) const {
    return std::nullopt;
  }

  // Queues a packet. `payload` points into the program's memory, which must be there, and is read
  // not later than flush().
  // Packets in a row with one route and size leave in one system call where the kernel can.
  virtual void send(const Route& route, core::TrafficClass traffic_class,
                    const wire::Packet& packet, wire::PayloadPieces payload) = 0;
  // So many packets of a run (wire::move_on), of which `first` is one and whose payload lies in one
  // piece: as if each were sent.
  virtual void send_run(const Route& route, core::TrafficClass traffic_class,
                        const wire::Packet& first, std::span<const std::byte> payload,
                        unsigned count);
  virtual void flush() = 0;
  // How many packets in a row on one path are worth while for this back end; 1 = no gain.
  virtual unsigned burst_limit() const = 0;

  // Hands at most about `budget` packets to `receiver`; returns how many.
  virtual unsigned receive(Receiver& receiver, unsigned budget) = 0;

  // Becomes readable (level triggered) when receive() has something or on_wake() is wanted. An
  // epoll descriptor of the back end's own.
  virtual int wait_descriptor() const = 0;
  // Called after wait_descriptor() fired, and once a second: looks after interfaces and addresses.
  virtual void on_wake() = 0;

  virtual const BackendCounters& counters() const = 0;
  // Whether packets are sealed, and with which keys now.
  virtual seal::Stance stance() const { return {}; }
  // What people should know and nobody asked for, a line each; each is given once.
  virtual std::vector<std::string> take_notices() { return {}; }
};

struct BackendResult {
  std::unique_ptr<Backend> backend;
  std::string error;  // one line for a person when there is none
};
BackendResult open_backend(const node::DeviceConfig& config);

// For a kind of back end whose open() returns what is wrong, or nothing.
template <typename Kind>
BackendResult opened(const node::DeviceConfig& config) {
  auto backend = std::make_unique<Kind>(config);
  std::string error = backend->open();
  if (!error.empty()) return {.backend = nullptr, .error = std::move(error)};
  return {.backend = std::move(backend), .error = {}};
}

// One for each engine of a device. Each has a process number and so sockets of its own.
using Backends = std::vector<std::unique_ptr<Backend>>;
// The first one must open. Further ones are a matter of speed: where they cannot be had, because
// numbers or descriptors are used up, the device does with fewer. Empty when there is an `error`.
Backends open_backends(const node::DeviceConfig& config, std::string& error);

}  // namespace mrc::nic
