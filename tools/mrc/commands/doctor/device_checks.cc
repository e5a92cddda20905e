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
#include "nic/device.h"
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

Finding plane_finding(const std::string& what, const node::PlaneConfig& plane,
                      std::set<int>& mtus) {
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
  const std::string found = fmt::format("{} on {}, MTU {}", address, carrier, state.mtu);
  if (state.mtu < kGoodMtu)
    return {Verdict::kSlow, what, found + ": packets of less than 4 KiB",
            fmt::format("ip link set dev {} mtu 9000, on switches and peers too", carrier)};
  return {Verdict::kOk, what, found, {}};
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
    if (config.backend == node::BackendKind::kWire) {
      const bool there = access(plane.wire_path.c_str(), W_OK) == 0;
      findings.push_back({there ? Verdict::kOk : Verdict::kBroken, what,
                          there ? plane.wire_path : "there is no socket " + plane.wire_path,
                          there ? "" : "start the virtual switch first"});
      continue;
    }
    findings.push_back(plane_finding(what, plane, mtus));
  }
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

void check_device(const node::DeviceConfig& config, const std::string& peer, Findings& findings) {
  std::string error;
  const std::shared_ptr<nic::Device> device = nic::Device::open(config, error);
  if (!device) {
    findings.push_back(
        {Verdict::kBroken, config.name, error,
         fmt::format("if UDP port {} is taken by something else, set MRC_PORT", config.udp_port)});
    return;
  }
  const unsigned process = device->report().process;
  findings.push_back({Verdict::kOk,
                      config.name,
                      fmt::format("opens; UDP port {}, process number {}, payload up to {} bytes",
                                  config.udp_port + process, process, device->path_mtu()),
                      {}});
  const Result<wire::IpAddress> target = wire::parse_address(peer);
  if (!peer.empty() && !target.ok()) {
    findings.push_back({Verdict::kBroken, "--peer", peer + " is no IP address",
                        "give the peer's GID as mrc info shows it there"});
    return;
  }
  probe_planes(*device, peer.empty() ? device->gid() : target.value(), findings);
}

}  // namespace mrc::tool::doctor
