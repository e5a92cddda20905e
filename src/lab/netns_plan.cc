#include "lab/netns_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "fabric/export.h"
#include "fabric/host_address.h"
#include "fabric/input_error.h"

namespace mrc::lab {
namespace {

using fabric::LinkId;
using fabric::Node;
using fabric::NodeKind;

constexpr unsigned kMtu = 9'000;
constexpr const char* kSidDevice = "sr0";
constexpr const char* kManagementGateway = "169.254.1.1";
constexpr unsigned kMaxHosts = 60'000;  // that management_address() has numbers for
// Of the switch's side of a host's cable; the first byte says locally administered.
constexpr std::uint8_t kGatewayMac = 0x06;

// A port of a kernel switch holds back 5 ms of its rate before it drops; it may send 1 ms at once.
constexpr std::uint64_t kQueuePerSecond = 200;
constexpr std::uint64_t kBurstPerSecond = 1'000;
constexpr std::uint64_t kMinQueueBytes = 128 << 10;
constexpr std::uint64_t kMinBurstBytes = 16 << 10;
// A host's own port drops nothing: its socket is full first.
constexpr std::uint64_t kHostQueueBytes = 32 << 20;

wire::MacAddress host_mac(unsigned plane, unsigned host) {
  const wire::IpAddress gid = fabric::host_address(0, host);
  wire::MacAddress mac{0x02, static_cast<std::uint8_t>(plane + 1)};
  std::copy(gid.bytes.end() - 4, gid.bytes.end(), mac.begin() + 2);
  return mac;
}

std::string link_local(wire::Usid usid) {
  return fmt::format("fe80::{:x}", static_cast<unsigned>(usid));
}

}  // namespace

std::string mac_text(const wire::MacAddress& mac) {
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", mac[0], mac[1], mac[2], mac[3],
                     mac[4], mac[5]);
}

std::string management_address(SwitchKind kind, unsigned host) {
  if (kind == SwitchKind::kProcess) return "127.0.0.1";
  return fmt::format("10.0.{}.{}", host / 250, host % 250 + 1);
}

NetnsPlan::NetnsPlan(const fabric::Routing& routing, std::string prefix, SwitchKind kind)
    : routing_(&routing), prefix_(std::move(prefix)), kind_(kind) {
  MRC_ASSERT(kind != SwitchKind::kProcess);
  if (topology().three_tier())
    throw fabric::InputError("--netns works with fabrics of two tiers; leave out --t2 and --pods");
  if (topology().hosts() > kMaxHosts)
    throw fabric::InputError(fmt::format("--netns works with up to {} hosts", kMaxHosts));
}

std::string NetnsPlan::host_space(unsigned host) const {
  return fmt::format("{}host-{}", prefix_, host);
}

std::string NetnsPlan::switch_space(const Node& node) const {
  if (kind_ == SwitchKind::kNamespace) return prefix_ + "switches";
  return fmt::format("{}p{}-{}-{}", prefix_, node.plane, fabric::node_kind_name(node.kind),
                     node.index);
}

std::string NetnsPlan::host_port(unsigned plane) { return fmt::format("nic{}", plane); }

wire::MacAddress NetnsPlan::gateway_mac(unsigned plane, unsigned host) const {
  wire::MacAddress mac = host_mac(plane, host);
  mac[0] = kGatewayMac;
  return mac;
}

CableEnd NetnsPlan::end_at(const Node& node, LinkId leaving) const {
  if (node.kind == NodeKind::kHost) return {host_space(node.index), host_port(node.plane)};
  if (kind_ == SwitchKind::kNamespace) {
    const Node host = topology().describe(leaving).to;
    return {switch_space(node), fmt::format("h{}p{}", host.index, host.plane)};
  }
  const auto table = routing_->table(node);
  const auto found = std::find_if(table.begin(), table.end(),
                                  [leaving](const fabric::Route& r) { return r.link == leaving; });
  MRC_ASSERT(found != table.end());
  return {switch_space(node), fmt::format("swp{}", found - table.begin() + 1)};
}

// Of the two directions of a cable the one whose start is its home end.
LinkId NetnsPlan::home_link(LinkId link) const {
  const fabric::Link described = topology().describe(link);
  const LinkId back = topology().reverse(link);
  if (described.from.kind == NodeKind::kHost) return back;
  if (described.to.kind == NodeKind::kHost) return link;
  return described.from.kind < described.to.kind ? link : back;
}

CableEnd NetnsPlan::home_end(LinkId link) const { return sending_end(home_link(link)); }
bool NetnsPlan::leaves_home(LinkId link) const { return home_link(link) == link; }
CableEnd NetnsPlan::sending_end(LinkId link) const {
  return end_at(topology().describe(link).from, link);
}

std::string NetnsPlan::cable(LinkId link) const {
  const fabric::Link described = topology().describe(link);
  const CableEnd home = sending_end(link);
  const CableEnd far = sending_end(topology().reverse(link));
  std::string home_mac;
  std::string far_mac;
  if (described.to.kind == NodeKind::kHost) {
    const unsigned plane = described.to.plane;
    const unsigned host = described.to.index;
    home_mac = " address " + mac_text(gateway_mac(plane, host));
    far_mac = " address " + mac_text(host_mac(plane, host));
  }
  return fmt::format(
      "link add name {} netns {}{} mtu {} type veth peer name {} netns {}{} mtu {}\n", home.port,
      home.name_space, home_mac, kMtu, far.port, far.name_space, far_mac, kMtu);
}

std::string NetnsPlan::creation() const {
  std::string text;
  for (unsigned host = 0; host < topology().hosts(); ++host)
    text += fmt::format("netns add {}\n", host_space(host));
  text += fmt::format("netns add {}\n", management_space());
  if (kind_ == SwitchKind::kNamespace) text += fmt::format("netns add {}\n", switch_space({}));
  for (const Node& node : fabric::all_switches(topology())) {
    if (kind_ != SwitchKind::kKernel) break;
    const std::string space = switch_space(node);
    // The switch's own uSID needs a device that no cut takes down; every kernel with cables has
    // this kind.
    text += fmt::format(
        "netns add {0}\nlink add name {1} netns {0} type veth peer name {1}p netns "
        "{0}\n",
        space, kSidDevice);
  }
  for (unsigned host = 0; host < topology().hosts(); ++host) {
    text += fmt::format("link add name mgmt netns {} type veth peer name m{} netns {}\n",
                        host_space(host), host, management_space());
  }
  for (std::uint32_t i = 0; i < topology().link_count(); ++i) {
    const LinkId link{i};
    const bool to_host = topology().describe(link).to.kind == NodeKind::kHost;
    if (leaves_home(link) && (to_host || kind_ == SwitchKind::kKernel)) text += cable(link);
  }
  return text;
}

std::string NetnsPlan::host_setup(unsigned host) const {
  std::string text = fmt::format(
      "link set lo up\n"
      "link set mgmt up\n"
      "addr add {0}/32 dev mgmt\n"
      "route add {1}/32 dev mgmt\n"
      "route add 10.0.0.0/8 via {1} dev mgmt src {0}\n",
      management_address(kind_, host), kManagementGateway);
  for (unsigned plane = 0; plane < topology().planes(); ++plane) {
    const Node node{NodeKind::kHost, static_cast<std::uint8_t>(plane), host};
    text += fmt::format(
        "link set {0} addrgenmode none\n"
        "link set {0} up\n"
        "addr add {1}/64 dev {0} nodad\n",
        host_port(plane), link_local(routing_->usid_of(node)));
  }
  return text;
}

std::string NetnsPlan::management_setup() const {
  std::string text = "link set lo up\n";
  for (unsigned host = 0; host < topology().hosts(); ++host) {
    text += fmt::format(
        "link set m{0} up\n"
        "addr add {1}/32 dev m{0}\n"
        "route add {2}/32 dev m{0}\n",
        host, kManagementGateway, management_address(kind_, host));
  }
  return text;
}

std::string NetnsPlan::our_switches_setup() const {
  std::string text;
  for (unsigned host = 0; host < topology().hosts(); ++host) {
    for (unsigned plane = 0; plane < topology().planes(); ++plane)
      text +=
          fmt::format("link set h{0}p{1} addrgenmode none\nlink set h{0}p{1} up\n", host, plane);
  }
  return text;
}

std::string NetnsPlan::switch_script(const Node& node) const {
  fabric::ExportOptions options;
  options.sid_device = kSidDevice;
  return fabric::export_switch(*routing_, node, options);
}

std::string NetnsPlan::port_setup(const CableEnd& end) const {
  const auto switches = fabric::all_switches(topology());
  const auto node = std::find_if(switches.begin(), switches.end(), [&](const Node& candidate) {
    return switch_space(candidate) == end.name_space;
  });
  MRC_ASSERT(node != switches.end());
  const std::string script = switch_script(*node);
  // A batch takes no options; the family follows from the addresses.
  constexpr std::string_view kCommand = "ip -6 ";
  const std::string device = " dev " + end.port + " ";
  std::string text;
  for (std::size_t from = 0; from < script.size();) {
    const std::size_t length = script.find('\n', from) - from;
    const std::string line = script.substr(from, length);
    if (line.starts_with(kCommand) && (line + " ").find(device) != std::string::npos)
      text += line.substr(kCommand.size()) + "\n";
    from += length + 1;
  }
  return text;
}

std::string NetnsPlan::rate_setup(LinkId link, double share) const {
  const fabric::Link described = topology().describe(link);
  const auto nominal = static_cast<double>(topology().link_class(described.tier).bits_per_second);
  const auto rate = static_cast<std::uint64_t>(std::max(nominal * share, 1e5));
  const std::uint64_t bytes = rate / 8;
  const std::uint64_t queue = described.from.kind == NodeKind::kHost
                                  ? kHostQueueBytes
                                  : std::max(bytes / kQueuePerSecond, kMinQueueBytes);
  return fmt::format("qdisc replace dev {} root tbf rate {}bit burst {} limit {}\n",
                     sending_end(link).port, rate,
                     std::max(bytes / kBurstPerSecond, kMinBurstBytes), queue);
}

}  // namespace mrc::lab
