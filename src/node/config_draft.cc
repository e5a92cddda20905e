#include "node/config_draft.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <set>

#include "node/plane_address.h"
#include "node/telemetry_reader.h"
#include "os/environment.h"
#include "os/interfaces.h"
#include "os/socket_address.h"

namespace mrc::node {
namespace {

constexpr unsigned kLoopbackPrefixBits = 24;
constexpr std::size_t kMaxNameLength = 60;
static_assert(wire::kOpenMrc.window_units == core::kDefaultWindowUnits);

std::string text_of(const wire::IpAddress& address) {
  return std::string(wire::format_address(address).view());
}

std::string default_directory(const std::string& name) {
  std::string system = "/run/mrc/" + name;
  if (::access(system.c_str(), F_OK) == 0 || ::geteuid() == 0) return system;
  const char* const runtime = os::environment("XDG_RUNTIME_DIR");
  if (runtime != nullptr && runtime[0] == '/') return std::string(runtime) + "/mrc/" + name;
  return "/tmp/mrc-" + std::to_string(::geteuid()) + "/" + name;
}

void add_loopback_planes(DeviceConfig& config, unsigned count) {
  for (unsigned plane = 0; plane < count; ++plane) {
    PlaneConfig loopback;
    loopback.address = wire::ipv4_address(0x7F00'0001U | plane << 8);
    loopback.prefix_bits = kLoopbackPrefixBits;
    config.planes.push_back(loopback);
  }
}

std::string resolve_plane(const PlaneDraft& plane, IpVersion version, bool may_come_later,
                          const os::InterfaceList& list, PlaneConfig& out) {
  out.interface = plane.interface;
  out.wire_path = plane.wire_path;
  out.next_hop_mac = plane.next_hop_mac;
  out.usid_block = plane.usid_block;
  if (plane.address) {
    if (!plane.prefix_bits) return "address needs a prefix length, as in \"10.0.1.5/24\"";
    if (*plane.prefix_bits > os::address_bits(*plane.address)) {
      return "prefix is longer than the address";
    }
    out.address = *plane.address;
    out.prefix_bits = *plane.prefix_bits;
    return {};
  }
  if (plane.prefix_bits) return "prefix without address";
  if (plane.interface.empty()) return "a plane needs an interface or an address";
  const os::InterfaceAddress* const found =
      choose_address(list, plane.interface, version != IpVersion::kV6, version != IpVersion::kV4);
  if (found == nullptr && may_come_later) {
    out.address = {.is_v4 = version == IpVersion::kV4};
    out.follow_interface = true;
    return {};
  }
  if (found == nullptr) {
    if (!os::interface_exists(plane.interface)) return "no interface named " + plane.interface;
    const char* const kind = version == IpVersion::kV6   ? " has no IPv6 address"
                             : version == IpVersion::kV4 ? " has no IPv4 address"
                                                         : " has no address";
    return "interface " + plane.interface + kind;
  }
  out.address = found->address;
  out.prefix_bits = found->prefix_bits;
  out.follow_interface = true;
  return {};
}

std::string check_plane(const DeviceConfig& config, const PlaneConfig& plane) {
  if (config.backend == BackendKind::kWire && plane.wire_path.empty() && plane.interface.empty()) {
    return "a plane of backend \"wire\" needs the path of its cable, wire = \"...\", or an "
           "interface";
  }
  if (config.backend == BackendKind::kUdp && !plane.wire_path.empty()) {
    return "wire is for backend \"wire\"";
  }
  if (config.backend == BackendKind::kUdp && plane.next_hop_mac != wire::MacAddress{}) {
    return "next_hop_mac is for backend \"wire\"";
  }
  for (const PlaneConfig& other : config.planes) {
    if (other.address.is_v4 != plane.address.is_v4) return "planes mix IPv4 and IPv6";
    // A wire has ends of its own; sockets tell planes apart by address.
    if (other.address == plane.address && has_address(plane) &&
        config.backend == BackendKind::kUdp) {
      return "two planes have the address " + text_of(plane.address);
    }
  }
  return {};
}

// An interface that lost its IPv4 address has a link-local one still. Where others have IPv4 that
// is not what was meant.
std::string check_first(const DeviceDraft& draft, const PlaneConfig& first,
                        const os::InterfaceList& list) {
  if (!first.follow_interface || !os::is_link_local(first.address)) return {};
  if (draft.ip_version == IpVersion::kV6) return {};
  for (const PlaneDraft& plane : draft.planes) {
    if (plane.address || !choose_address(list, plane.interface, true, false)) continue;
    return "interface " + first.interface + " has no IPv4 address, which " + plane.interface +
           " has; the first plane names the device and must have its address";
  }
  return {};
}

std::string resolve_planes(DeviceDraft& draft) {
  DeviceConfig& config = draft.config;
  config.planes.clear();
  if (draft.planes.empty()) {
    if (config.backend == BackendKind::kWire) {
      return draft.origin + "backend \"wire\" needs planes with cables";
    }
    add_loopback_planes(config, draft.loopback_planes.value_or(kDefaultLoopbackPlanes));
    return {};
  }
  if (draft.loopback_planes) {
    return draft.loopback_origin + "loopback_planes contradicts the planes given elsewhere";
  }
  if (draft.planes.size() > kMaxPorts) return draft.planes_origin + "more than 16 planes";
  const os::InterfaceList list = os::list_interfaces();
  for (const PlaneDraft& plane : draft.planes) {
    PlaneConfig resolved;
    // The first plane names the device, and says which IP version it speaks; another one may come
    // while the device runs.
    const bool is_first = config.planes.empty();
    const bool may_come_later = !is_first && config.backend == BackendKind::kUdp;
    IpVersion version = draft.ip_version;
    if (may_come_later) version = config.planes[0].address.is_v4 ? IpVersion::kV4 : IpVersion::kV6;
    std::string error = resolve_plane(plane, version, may_come_later, list, resolved);
    if (error.empty() && is_first) error = check_first(draft, resolved, list);
    if (error.empty()) error = check_plane(config, resolved);
    if (!error.empty()) return plane.origin + error;
    config.planes.push_back(std::move(resolved));
  }
  return {};
}

std::string check_routes(const DeviceDraft& draft) {
  const DeviceConfig& config = draft.config;
  if (config.srv6_routes.empty()) return {};
  if (config.backend != BackendKind::kWire)
    return draft.routes_origin + "srv6_route is for backend \"wire\"";
  for (const PlaneConfig& plane : config.planes) {
    if (plane.address.is_v4) return draft.routes_origin + "srv6_route needs planes with IPv6";
    if (plane.usid_block == wire::UsidBlock{})
      return draft.routes_origin + "srv6_route needs a usid_block in every plane";
  }
  return {};
}

std::string check_peers(const DeviceDraft& draft) {
  std::set<wire::IpAddress, os::AddressOrder> gids;
  for (const PeerEntry& peer : draft.config.peers) {
    const std::string who = draft.peers_origin + "peer " + text_of(peer.gid);
    if (!gids.insert(peer.gid).second) return who + " is there twice";
    if (peer.planes.size() != draft.config.planes.size()) {
      return who + " has " + std::to_string(peer.planes.size()) + " addresses for " +
             std::to_string(draft.config.planes.size()) + " planes";
    }
    for (const wire::IpAddress& address : peer.planes) {
      if (address.is_v4 != draft.config.planes[0].address.is_v4) {
        return who + " has an address of another IP version than the planes";
      }
    }
  }
  return {};
}

wire::Dialect dialect_of(const DialectDraft& draft) {
  wire::Dialect dialect = *draft.base;
  for (const auto& [name, value] : draft.fields)
    wire::find_dialect_field(name)->set(dialect, value);
  return dialect;
}

std::optional<std::uint32_t> parse_hex(std::string_view text, std::uint32_t max) {
  std::uint32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value, 16);
  if (result.ec != std::errc{} || result.ptr != end || value > max) return std::nullopt;
  return value;
}

// A path for each choice of the routes: what the fabric has, as far as that is known.
std::uint32_t usual_evs(const DeviceConfig& config) {
  constexpr std::uint32_t kMost = 32;
  std::uint32_t evs = config.evs_per_port;
  for (const Srv6Route& route : config.srv6_routes)
    evs = std::max(evs, std::min<std::uint32_t>(route.choices, kMost));
  return evs;
}

}  // namespace

bool is_device_name(std::string_view name) {
  const auto fine = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= kMaxNameLength && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), fine);
}

bool parse_plane_address(std::string_view text, PlaneDraft& plane) {
  const std::size_t slash = text.find('/');
  const auto address = wire::parse_address(text.substr(0, slash));
  if (!address.ok()) return false;
  plane.address = address.value();
  if (slash == std::string_view::npos) return true;
  plane.prefix_bits = parse_count(text.substr(slash + 1), 0, os::address_bits(*plane.address));
  return plane.prefix_bits.has_value();
}

bool parse_mac(std::string_view text, wire::MacAddress& mac) {
  constexpr std::size_t kPart = 3;  // two digits and a colon
  if (text.size() != mac.size() * kPart - 1) return false;
  for (std::size_t i = 0; i < mac.size(); ++i) {
    if (i > 0 && text[i * kPart - 1] != ':') return false;
    const auto value = parse_hex(text.substr(i * kPart, 2), 0xFF);
    if (!value) return false;
    mac[i] = static_cast<std::uint8_t>(*value);
  }
  return true;
}

bool parse_usid_block(std::string_view text, wire::UsidBlock& block) {
  constexpr std::string_view kLength = "/32";
  if (!text.ends_with(kLength)) return false;
  text.remove_suffix(kLength.size());
  const auto address = wire::parse_address(text);
  if (!address.ok() || address.value().is_v4) return false;
  block = wire::carrier_block(address.value());
  return block != wire::UsidBlock{} && wire::usid_count(address.value()) == 0;
}

bool parse_usids(std::string_view text, Srv6Route& route) {
  route.count = 0;
  route.choices = 1;
  route.followers = 1;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t end = std::min(text.find(':', from), text.size());
    const std::string_view part = text.substr(from, end - from);
    const std::size_t mark = part.find_first_of("*/");
    const auto first = parse_hex(part.substr(0, mark), 0xFFFF);
    if (!first || *first == 0 || route.count == wire::kMaxUsids) return false;
    if (mark != std::string_view::npos) {
      const auto choices = parse_count(part.substr(mark + 1), 1, 0x1'0000 - *first);
      const bool follows = part[mark] == '/';
      if (!choices || (follows ? route.followers : route.choices) > 1) return false;
      if (follows && route.choices % *choices != 0) return false;
      (follows ? route.followers : route.choices) = *choices;
      (follows ? route.follower_at : route.choice_at) = route.count;
    }
    route.usids[route.count++] = wire::Usid{static_cast<std::uint16_t>(*first)};
    from = end + 1;
  }
  return true;
}

std::optional<std::uint32_t> parse_count(std::string_view text, std::uint32_t min,
                                         std::uint32_t max) {
  std::uint32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc{} || result.ptr != end || value < min || value > max) {
    return std::nullopt;
  }
  return value;
}

std::string finish_device(DeviceDraft& draft, const std::string& state_directory) {
  DeviceConfig& config = draft.config;
  std::string error = resolve_planes(draft);
  if (error.empty()) error = check_peers(draft);
  if (error.empty()) error = check_routes(draft);
  if (!error.empty()) return error;
  const Status dscp = wire::check_dscp_map(config.dscp);
  if (!dscp.ok()) return draft.dscp_origin + dscp.what();
  if (draft.evs_origin.empty()) config.evs_per_port = usual_evs(config);
  if (config.evs_per_port * config.planes.size() > kMaxEvsPerQp) {
    return draft.evs_origin + "evs_per_port times planes is more than " +
           std::to_string(kMaxEvsPerQp);
  }
  config.dialect = dialect_of(draft.dialect);
  config.retry.mpr = config.dialect.window_units;
  if (!state_directory.empty()) config.directory = state_directory + "/" + config.name;
  if (config.directory.empty()) config.directory = default_directory(config.name);
  if (draft.telemetry) config.telemetry.directory = telemetry_directory();
  return {};
}

}  // namespace mrc::node
