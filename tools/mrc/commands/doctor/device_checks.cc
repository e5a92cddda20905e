#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>

#include "base/types.h"
#include "commands/doctor/check.h"
#include "commands/doctor/responder.h"
#include "device_facts.h"
#include "nic/device.h"
#include "node/plane_address.h"
#include "os/socket_address.h"
#include "wire/ip_address.h"

namespace mrc::tool::doctor {
namespace {

// A payload of 4,096 bytes with all headers, SRv6 included, fits.
constexpr int kGoodMtu = 4'352;
constexpr DurationNs kProbeTimeoutNs = kSecondNs;

std::string text_of(const wire::IpAddress& address) {
  return std::string(wire::format_address(address).view());
}

bool same_address(const sockaddr* found, const wire::IpAddress& address) {
  if (found == nullptr) return false;
  const void* const generic = found;
  if (address.is_v4 && found->sa_family == AF_INET) {
    const auto* four = static_cast<const sockaddr_in*>(generic);
    return std::memcmp(&four->sin_addr, address.bytes.data(), sizeof(four->sin_addr)) == 0;
  }
  if (!address.is_v4 && found->sa_family == AF_INET6) {
    const auto* six = static_cast<const sockaddr_in6*>(generic);
    return std::memcmp(&six->sin6_addr, address.bytes.data(), sizeof(six->sin6_addr)) == 0;
  }
  return false;
}

// Which interface carries an address; empty when none does. All of 127/8 belongs to loopback.
std::string carrier_of(const wire::IpAddress& address) {
  if (address.is_v4 && address.bytes[0] == 127) return "lo";
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (same_address(at->ifa_addr, address)) return at->ifa_name;
  }
  return {};
}

struct LinkState {
  bool up = false;
  bool running = false;
  int mtu = 0;
};

LinkState state_of(const std::string& interface) {
  LinkState state;
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request = {};
  interface.copy(std::begin(request.ifr_name), IFNAMSIZ - 1);
  if (ioctl(socket, SIOCGIFFLAGS, &request) == 0) {
    state.up = (request.ifr_flags & IFF_UP) != 0;
    state.running = (request.ifr_flags & IFF_RUNNING) != 0;
  }
  if (ioctl(socket, SIOCGIFMTU, &request) == 0) state.mtu = request.ifr_mtu;
  close(socket);
  return state;
}

Finding mtu_finding(const std::string& what, const std::string& plane, const std::string& interface,
                    int mtu) {
  const std::string found = fmt::format("{}, MTU {}", plane, mtu);
  if (mtu >= kGoodMtu) return {Verdict::kOk, what, found, {}};
  return {Verdict::kSlow, what, found + ": packets of less than 4 KiB",
          fmt::format("ip link set dev {} mtu 9000, on switches and peers too", interface)};
}

Finding plane_finding(const std::string& what, const node::PlaneConfig& plane,
                      std::set<int>& mtus) {
  if (!node::has_address(plane)) {
    const bool there = if_nametoindex(plane.interface.c_str()) != 0;
    if (!there)
      return {Verdict::kBroken, what, "there is no interface " + plane.interface,
              "correct MRC_IFACES or the configuration file; `ip link` lists interfaces"};
    return {Verdict::kBroken, what,
            "interface " + plane.interface + " has no address of the planes' IP version",
            "ip addr add ADDRESS/BITS dev " + plane.interface};
  }
  const std::string address = text_of(plane.address);
  const std::string carrier = carrier_of(plane.address);
  const std::string& name = carrier.empty() ? plane.interface : carrier;
  if (!name.empty() && if_nametoindex(name.c_str()) == 0)
    return {Verdict::kBroken, what, "there is no interface " + name,
            "correct MRC_IFACES or the configuration file; `ip link` lists interfaces"};
  if (carrier.empty())
    return {Verdict::kBroken, what, "no interface has the address " + address,
            fmt::format("ip addr add {}/{} dev {}", address, plane.prefix_bits,
                        name.empty() ? "INTERFACE" : name)};
  const LinkState state = state_of(carrier);
  mtus.insert(state.mtu);
  if (!state.up)
    return {Verdict::kBroken, what, carrier + " is down", "ip link set dev " + carrier + " up"};
  if (!state.running)
    return {Verdict::kBroken, what, carrier + " has no carrier",
            "check the cable and the other end"};
  return mtu_finding(what, fmt::format("{} on {}", address, carrier), carrier, state.mtu);
}

// Whole frames go over it; addresses of the device are none of the kernel's.
Finding cable_finding(const std::string& what, const node::DeviceConfig& config,
                      const node::PlaneConfig& plane, std::set<int>& mtus) {
  const std::string& name = plane.interface;
  if (if_nametoindex(name.c_str()) == 0)
    return {Verdict::kBroken, what, "there is no interface " + name,
            "correct the configuration file; `ip link` lists interfaces"};
  const LinkState state = state_of(name);
  mtus.insert(state.mtu);
  if (!state.up)
    return {Verdict::kBroken, what, name + " is down", "ip link set dev " + name + " up"};
  if (!state.running)
    return {Verdict::kBroken, what, name + " has no carrier", "check the cable and the other end"};
  // Made from the peer's GID it is that of no switch, and a route by uSIDs begins at one.
  if (plane.next_hop_mac == wire::MacAddress{} && !config.srv6_routes.empty())
    return {Verdict::kBroken, what, name + " has no next_hop_mac: no switch takes its frames",
            "set next_hop_mac in the configuration file to the MAC address of the switch's port"};
  return mtu_finding(what, "whole frames over " + name, name, state.mtu);
}

// As a device is where nobody has named interfaces: all is well there, and no other host exists.
void check_loopback(const node::DeviceConfig& config, Findings& findings) {
  if (config.backend != node::BackendKind::kUdp) return;
  const auto count = static_cast<std::size_t>(std::ranges::count_if(
      config.planes, [](const node::PlaneConfig& plane) { return is_loopback(plane.address); }));
  if (count == 0) return;
  const std::size_t all = config.planes.size();
  findings.push_back(
      {Verdict::kSlow, config.name + " interfaces",
       fmt::format("{} on loopback, where no other host can be reached",
                   count == all ? "all planes are" : fmt::format("{} of {} planes", count, all)),
       "name the interfaces: MRC_IFACES=eth1,eth2, or interfaces = [\"eth1\", \"eth2\"] in "
       "/etc/mrc/mrc.toml"});
}

// In one network the kernel sends everything by one of the interfaces, whatever address it is from.
void check_networks(const node::DeviceConfig& config, Findings& findings) {
  if (config.backend != node::BackendKind::kUdp) return;
  for (std::size_t i = 0; i < config.planes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const node::PlaneConfig& a = config.planes[j];
      const node::PlaneConfig& b = config.planes[i];
      const unsigned bits = std::min(a.prefix_bits, b.prefix_bits);
      if (!node::has_address(a) || !node::has_address(b) || os::is_link_local(a.address)) continue;
      if (a.address.is_v4 != b.address.is_v4 || !os::same_network(a.address, b.address, bits))
        continue;
      findings.push_back(
          {Verdict::kBroken, fmt::format("{} ports {} and {}", config.name, j + 1, i + 1),
           fmt::format("{} and {} are in one network: the kernel sends both by one interface",
                       text_of(a.address), text_of(b.address)),
           "give each plane a network of its own, such as 10.0.1.0/24 and 10.0.2.0/24, on all "
           "hosts"});
      break;
    }
  }
}

// Asks for an answer on every plane; a plane without one is broken.
void probe_planes(nic::Device& device, const wire::IpAddress& peer, Findings& findings) {
  std::vector<nic::EndpointRequest> requests;
  const std::size_t planes = device.config().planes.size();
  for (std::size_t i = 0; i < planes; ++i) {
    nic::EndpointRequest request;
    request.id = static_cast<std::uint16_t>(i + 1);
    request.peer = peer;
    request.port = PortId{static_cast<std::uint8_t>(i + 1)};
    requests.push_back(request);
  }
  std::vector<nic::EndpointAnswer> answers;
  const int error = device.endpoint_requests(requests, kProbeTimeoutNs, answers);
  for (const nic::EndpointRequest& request : requests) {
    const std::string what =
        fmt::format("{} port {} to {}", device.config().name, request.id, text_of(peer));
    const auto found = std::ranges::find(answers, request.id, &nic::EndpointAnswer::id);
    if (found != answers.end()) {
      findings.push_back(
          {Verdict::kOk,
           what,
           fmt::format("answers after {:.0f} us", static_cast<double>(found->rtt_ns) / 1e3),
           {}});
      continue;
    }
    const std::string why = error != 0 && error != ETIMEDOUT ? std::strerror(error) : "no answer";
    findings.push_back(
        {Verdict::kBroken, what, why,
         fmt::format("let UDP ports {} to {} pass (firewall, routes), and check that an MRC "
                     "process runs on the peer",
                     device.config().udp_port, device.config().udp_port + 255)});
  }
}

}  // namespace

void check_interfaces(const node::DeviceConfig& config, Findings& findings) {
  std::set<int> mtus;
  unsigned port = 0;
  for (const node::PlaneConfig& plane : config.planes) {
    const std::string what = fmt::format("{} port {}", config.name, ++port);
    if (config.backend == node::BackendKind::kWire && plane.wire_path.empty()) {
      findings.push_back(cable_finding(what, config, plane, mtus));
      continue;
    }
    if (config.backend == node::BackendKind::kWire) {
      const bool there = access(plane.wire_path.c_str(), W_OK) == 0;
      findings.push_back({there ? Verdict::kOk : Verdict::kBroken, what,
                          there ? plane.wire_path : "there is no socket " + plane.wire_path,
                          there ? "" : "start the virtual switch first"});
      continue;
    }
    findings.push_back(plane_finding(what, plane, mtus));
  }
  check_networks(config, findings);
  check_loopback(config, findings);
  if (mtus.size() < 2) return;
  findings.push_back({Verdict::kSlow, config.name + " MTU",
                      fmt::format("planes differ: {} to {}; the smallest counts for all",
                                  *mtus.begin(), *mtus.rbegin()),
                      "give all interfaces of the device the same MTU"});
}

void check_state_directory(const node::DeviceConfig& config, Findings& findings) {
  const std::string what = config.name + " state";
  struct stat info = {};
  if (stat(config.directory.c_str(), &info) != 0) {
    findings.push_back({errno == ENOENT ? Verdict::kOk : Verdict::kBroken, what,
                        config.directory + ": " + std::strerror(errno),
                        errno == ENOENT ? "" : "set MRC_STATE_DIR to a directory of yours"});
  } else if ((info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0) {
    findings.push_back({Verdict::kBroken, what,
                        config.directory + " can be changed by everybody on this host",
                        "chmod o-w " + config.directory});
  } else {
    const bool own = access(config.directory.c_str(), W_OK) == 0;
    findings.push_back({Verdict::kOk,
                        what,
                        fmt::format("{}, this user may {}", config.directory,
                                    own ? "change it" : "only read it (no controller)"),
                        {}});
  }
}

bool check_device(const node::DeviceConfig& config, const PeerHost& peer, Findings& findings) {
  std::string error;
  const std::shared_ptr<nic::Device> device = nic::Device::open(config, error);
  if (!device) {
    const bool port_is_taken =
        error.find("port") != std::string::npos && config.backend == node::BackendKind::kUdp;
    findings.push_back(
        {Verdict::kBroken, config.name, error,
         port_is_taken ? fmt::format("if something else has UDP port {}, set MRC_PORT on all hosts",
                                     config.udp_port)
                       : "see what the line says; `mrc info` shows the device"});
    return false;
  }
  const unsigned process = device->report().process;
  findings.push_back({Verdict::kOk,
                      config.name,
                      fmt::format("opens; UDP port {}, process number {}, payload up to {} bytes",
                                  config.udp_port + process, process, device->path_mtu()),
                      {}});
  if (peer.host.empty()) {
    probe_planes(*device, device->gid(), findings);
    return false;
  }
  std::string told;
  if (peer.must_answer || config.backend == node::BackendKind::kUdp)
    told = ask_responder(config, peer, device->path_mtu(), findings);
  if (told.empty() && peer.must_answer) return false;
  const Result<wire::IpAddress> target = wire::parse_address(told.empty() ? peer.host : told);
  if (target.ok()) {
    probe_planes(*device, target.value(), findings);
  } else {
    findings.push_back({Verdict::kBroken, "--peer", peer.host + " is no IP address",
                        "run `mrc doctor --serve` there, or give its GID as mrc info shows it"});
  }
  return !told.empty();
}

}  // namespace mrc::tool::doctor
