// What a device is made of: its ports, how a peer is found on each of them, and its settings.
//
// Sources, the later ones win: built-in defaults, /etc/mrc/mrc.toml, ~/.config/mrc/mrc.toml (or the
// one file MRC_CONFIG names), MRC_* variables. With none of them there is one device, `mrc0`, with
// four ports on loopback. See docs/configuration.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"
#include "core/config.h"
#include "wire/dialect.h"
#include "wire/frame.h"
#include "wire/ip_address.h"
#include "wire/srv6.h"

namespace mrc::node {

inline constexpr unsigned kMaxThreads = 16;  // of one device

enum class BackendKind : std::uint8_t {
  kUdp,   // datagrams through the kernel, on any interface, without privileges
  kWire,  // whole frames over a unix socket to a virtual switch
};

// One port, which is one network plane. The host part of an address (what `prefix_bits` leaves) is
// the same on all planes of a host, so a peer's address on a plane follows from its GID; hosts
// whose addresses do not follow that rule are listed in DeviceConfig::peers.
struct PlaneConfig {
  std::string interface;    // empty: whichever carries `address`
  wire::IpAddress address;  // ours on this plane
  unsigned prefix_bits = 0;
  // kWire: socket of the virtual cable, "listen:PATH" at its other end; without it the cable is
  // `interface`.
  std::string wire_path;
  wire::MacAddress next_hop_mac{};  // kWire: of the switch; all zero = made from the peer's GID
  wire::UsidBlock usid_block{};     // kWire: of this plane, for srv6_routes
  bool follow_interface = false;    // the address is the interface's, whatever it becomes
};

// Packets to GIDs in `destination` get an SRv6 header: the block of the plane and these uSIDs. One
// of them may be a choice among several in a row, which the entropy of the path makes; one behind
// it may follow it: choice modulo `followers`.
struct Srv6Route {
  wire::IpAddress destination;
  unsigned prefix_bits = 0;
  std::array<wire::Usid, wire::kMaxUsids> usids{};
  unsigned count = 0;
  unsigned choice_at = 0;
  unsigned choices = 1;
  unsigned follower_at = 0;
  unsigned followers = 1;
};

// A host whose plane addresses follow no rule.
struct PeerEntry {
  wire::IpAddress gid;
  std::vector<wire::IpAddress> planes;  // one per port, in order
};

// What of a packet its check covers. kHeaders: not the payload of longer writes, for which the UDP
// checksum answers, as it does for TCP; with peers that say they take it, otherwise kFull.
enum class PayloadCheck : std::uint8_t { kFull, kHeaders };

// kSealed: packets are encrypted and authenticated with the cluster's key; plain ones are dropped.
enum class SecurityMode : std::uint8_t { kOff, kSealed };
inline constexpr const char* kDefaultKeyFile = "/etc/mrc/cluster.key";

// Where a device tells how it does, see telemetry_writer.h.
struct TelemetryPlace {
  std::string directory;  // of all users, who have folders of their own in it; empty: nowhere
  std::string group;      // name or number; empty: the owner alone may read
};

struct DeviceConfig {
  std::string name = "mrc0";
  BackendKind backend = BackendKind::kUdp;
  std::vector<PlaneConfig> planes;  // 1..16; port n is planes[n-1]; the GID is the first address
  std::vector<PeerEntry> peers;
  std::vector<Srv6Route> srv6_routes;              // kWire: none = frames are plain without an EV
  std::uint16_t udp_port = wire::kDefaultUdpPort;  // of the first process; see docs/wire.md
  std::uint32_t path_mtu = 0;                      // largest payload; 0 = ask the interfaces
  std::uint32_t evs_per_port = 8;                  // paths of queue pairs without a profile
  std::uint32_t active_evs_per_port = 0;           // used at a time; the rest are backups; 0 = all
  std::uint64_t port_bits_per_second = 0;          // 0 = ask the interfaces
  PayloadCheck payload_check = PayloadCheck::kFull;
  SecurityMode security = SecurityMode::kOff;
  std::string key_file = kDefaultKeyFile;  // with kSealed
  bool trimming = false;                   // switches trim packets instead of dropping them
  bool segmentation = true;         // bursts of packets in one system call, where the kernel can
  std::uint32_t spray_quantum = 0;  // packets in a row on one path; 0 = adaptive
  unsigned threads = 0;             // engines, each with a thread; 0 = by number of processors
  wire::DscpMap dscp;
  wire::Dialect dialect;      // what of the protocol is open; see docs/interop.md
  core::QpReadyToSend retry;  // timeout, retries and window where the program sets none
  std::string directory;      // where the node's state for this device lives
  TelemetryPlace telemetry;
};

// All devices of this machine. On bad input one line with file and position, nothing else happens.
struct ConfigResult {
  std::vector<DeviceConfig> devices;
  std::vector<std::string> environment;  // "MRC_X set by environment to y", for logs and `mrc info`
  std::string error;                     // empty when all is well
};
ConfigResult load_config();
ConfigResult parse_config(const std::string& text, const std::string& file_name);
DeviceConfig default_device();

}  // namespace mrc::node
