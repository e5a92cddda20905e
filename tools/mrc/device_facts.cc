#include "device_facts.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nic/io/plane_map.h"
#include "os/interfaces.h"

namespace mrc::tool {
namespace {

using nlohmann::json;

std::string text_of(const wire::IpAddress& address) {
  return std::string(wire::format_address(address).view());
}

std::optional<unsigned> number_in(const json& message, const char* key, unsigned most) {
  const auto found = message.find(key);
  if (found == message.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto value = found->get<std::uint64_t>();
  if (value > most) return std::nullopt;
  return static_cast<unsigned>(value);
}

std::optional<PlaneFacts> read_plane(const json& message) {
  if (!message.is_object()) return std::nullopt;
  const auto address = message.find("address");
  const auto mtu = number_in(message, "mtu", UINT16_MAX + 1);
  if (address == message.end() || !address->is_string() || !mtu) return std::nullopt;
  const Result<wire::IpAddress> parsed =
      wire::parse_address(address->get_ref<const std::string&>());
  if (!parsed.ok()) return std::nullopt;
  return PlaneFacts{.address = parsed.value(), .mtu = *mtu};
}

// What is wrong with a plane of theirs, by our map from GIDs to addresses.
std::optional<Disagreement> compare_plane(const nic::PlaneMap& map, const DeviceFacts& theirs,
                                          std::size_t index, const std::string& peer) {
  const auto port = static_cast<PortId>(index + 1);
  const wire::IpAddress gid = theirs.planes[0].address;
  const wire::IpAddress real = theirs.planes[index].address;
  const std::optional<wire::IpAddress> wanted = map.address_on(port, gid);
  if (wanted == real) return std::nullopt;
  const auto same = [&](const PlaneFacts& plane) { return wanted == plane.address; };
  const auto other = std::ranges::find_if(theirs.planes, same);
  Disagreement d{.fatal = true, .found = {}, .fix = {}};
  if (wanted && other != theirs.planes.end()) {
    d.found = fmt::format(
        "the planes of {} are in another order: its port {} is {}, which is on "
        "its port {}",
        peer, index + 1, text_of(*wanted), other - theirs.planes.begin() + 1);
    d.fix = "list the interfaces in the same order on all hosts (MRC_IFACES)";
  } else if (wanted) {
    d.found = fmt::format("port {} of {} has the address {}, where {} is expected", index + 1, peer,
                          text_of(real), text_of(*wanted));
    d.fix =
        "give a host the same host part on all planes, or list it as a peer "
        "(docs/configuration.md)";
  } else {
    d.found = fmt::format("{} of {} is in no network of ours, or its planes are in another order",
                          text_of(gid), peer);
    d.fix = "put the first ports of both hosts in one network, in the same order on all hosts";
  }
  return d;
}

void compare_mtus(const DeviceFacts& own, const DeviceFacts& theirs, const std::string& peer,
                  std::vector<Disagreement>& list) {
  for (std::size_t i = 0; i < std::min(own.planes.size(), theirs.planes.size()); ++i) {
    const unsigned here = own.planes[i].mtu;
    const unsigned there = theirs.planes[i].mtu;
    if (here == there || here == 0 || there == 0) continue;
    list.push_back({.fatal = false,
                    .found = fmt::format("port {} has MTU {} here and {} at {}: larger packets of "
                                         "one are lost at the other",
                                         i + 1, here, there, peer),
                    .fix = "give both ends and the switches between them the same MTU"});
  }
}

}  // namespace

bool is_loopback(const wire::IpAddress& address) {
  if (address.is_v4) return address.bytes[0] == 127;
  wire::IpAddress one{.is_v4 = false};
  one.bytes.back() = 1;
  return address == one;
}

std::optional<node::DeviceConfig> own_config(const std::string& device) {
  for (node::DeviceConfig& config : node::load_config().devices)
    if (device.empty() || config.name == device) return std::move(config);
  return std::nullopt;
}

std::optional<DeviceFacts> own_facts(const std::string& device) {
  const std::optional<node::DeviceConfig> config = own_config(device);
  return config ? facts_of(*config) : std::nullopt;
}

std::optional<DeviceFacts> facts_of(const node::DeviceConfig& config) {
  if (config.backend != node::BackendKind::kUdp) return std::nullopt;
  const os::InterfaceList list = os::list_interfaces();
  DeviceFacts facts{.udp_port = config.udp_port, .planes = {}};
  for (const node::PlaneConfig& plane : config.planes) {
    const os::InterfaceAddress* const entry =
        os::find_interface(list, plane.interface, plane.address);
    const std::string& name = entry == nullptr ? plane.interface : entry->name;
    facts.planes.push_back({.address = plane.address, .mtu = os::interface_mtu(name)});
  }
  return facts;
}

json to_json(const DeviceFacts& facts) {
  json planes = json::array();
  for (const PlaneFacts& plane : facts.planes)
    planes.push_back({{"address", text_of(plane.address)}, {"mtu", plane.mtu}});
  return {{"udp_port", facts.udp_port}, {"planes", planes}};
}

std::optional<DeviceFacts> read_facts(const json& message) {
  if (!message.is_object()) return std::nullopt;
  const auto port = number_in(message, "udp_port", UINT16_MAX);
  const auto planes = message.find("planes");
  if (!port || planes == message.end() || !planes->is_array() || planes->empty() ||
      planes->size() > kMaxPorts)
    return std::nullopt;
  DeviceFacts facts{.udp_port = *port, .planes = {}};
  for (const json& each : *planes) {
    const std::optional<PlaneFacts> plane = read_plane(each);
    if (!plane) return std::nullopt;
    facts.planes.push_back(*plane);
  }
  return facts;
}

std::vector<Disagreement> compare(const node::DeviceConfig& own, const DeviceFacts& theirs,
                                  const std::string& peer) {
  std::vector<Disagreement> list;
  const std::optional<DeviceFacts> ours = facts_of(own);
  if (!ours) return list;
  const bool loop_here = is_loopback(ours->planes[0].address);
  const bool loop_there = is_loopback(theirs.planes[0].address);
  if (loop_here != loop_there) {
    list.push_back(
        {.fatal = true,
         .found = fmt::format("the device of {} is on loopback", loop_there ? peer : "this host"),
         .fix = "name its interfaces there: MRC_IFACES=eth1,eth2 or a configuration"});
    return list;
  }
  if (ours->udp_port != theirs.udp_port)
    list.push_back(
        {.fatal = true,
         .found = fmt::format("UDP port {} here, {} at {}", ours->udp_port, theirs.udp_port, peer),
         .fix = "set the same MRC_PORT on all hosts, or none"});
  if (ours->planes.size() != theirs.planes.size())
    list.push_back({.fatal = true,
                    .found = fmt::format("{} planes here, {} at {}", ours->planes.size(),
                                         theirs.planes.size(), peer),
                    .fix = "list as many interfaces on all hosts (MRC_IFACES)"});
  const nic::PlaneMap map(own);
  for (std::size_t i = 0; i < std::min(ours->planes.size(), theirs.planes.size()); ++i) {
    if (std::optional<Disagreement> wrong = compare_plane(map, theirs, i, peer))
      list.push_back(std::move(*wrong));
  }
  compare_mtus(*ours, theirs, peer, list);
  return list;
}

}  // namespace mrc::tool
