#include "lab/host_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "lab/addresses.h"
#include "lab/cables.h"
#include "wire/ip_address.h"

namespace mrc::lab {
namespace {

// A queue pair without a profile draws entropy values at random, and the lab gives each of them a
// path of its own (see TunnelPaths). More paths than this are used in part.
constexpr unsigned kMaxEvs = 64;

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string text_of(const wire::IpAddress& address) {
  return std::string(wire::format_address(address).view());
}

unsigned number(wire::Usid usid) { return static_cast<unsigned>(usid); }

// Where the packets of `host` go, for a device that chooses their paths itself.
std::string srv6_routes(const fabric::Routing& routing, unsigned host) {
  const fabric::Topology& topology = routing.topology();
  std::string text;
  for (unsigned other = 0; other < topology.hosts(); ++other) {
    const fabric::UsidList usids = routing.usids(host, other, {});
    const bool near = topology.t0_of(host) == topology.t0_of(other);
    text += fmt::format("[[device.mrc0.srv6_route]]\nto = \"{}/128\"\n",
                        text_of(host_address(0, other)));
    text += near ? fmt::format("usids = \"{:x}:{:x}\"\n", number(usids[0]), number(usids[1]))
                 : fmt::format("usids = \"{:x}:{:x}*{}:{:x}:{:x}\"\n", number(usids[0]),
                               number(usids[1]), topology.t1_per_pod(), number(usids[2]),
                               number(usids[3]));
  }
  return text;
}

std::string plane_config(const fabric::Routing& routing, const Directory& directory,
                         SwitchKind switches, unsigned plane, unsigned host) {
  const std::string text = fmt::format("[[device.mrc0.plane]]\naddress = \"{}/{}\"\n",
                                       text_of(host_address(plane, host)), kHostPrefixBits);
  if (switches == SwitchKind::kProcess) {
    return text + "wire = " + quoted(Cables::socket_path(directory.ports_path(), plane, host)) +
           "\n";
  }
  const NetnsPlan plan(routing, directory.namespace_prefix(), switches);
  const auto block = static_cast<std::uint32_t>(routing.block_of(plane));
  return text + fmt::format(
                    "interface = \"{}\"\n"
                    "next_hop_mac = \"{}\"\n"
                    "usid_block = \"{:x}:{:x}::/32\"\n",
                    NetnsPlan::host_port(plane), mac_text(plan.gateway_mac(plane, host)),
                    block >> 16, block & 0xFFFF);
}

}  // namespace

std::string host_config(const fabric::Routing& routing, const Directory& directory,
                        SwitchKind switches, unsigned host) {
  const fabric::Topology& topology = routing.topology();
  const unsigned evs = std::min(topology.paths_per_plane(), kMaxEvs);
  std::string text = fmt::format(
      "# Host {} of lab {}. Made by `mrc lab up`, gone with `mrc lab down`.\n"
      "[device.mrc0]\n"
      "backend = \"wire\"\n"
      "port_rate = {}\n"
      "evs_per_port = {}\n"
      "directory = {}\n",
      host, directory.name(), topology.spec().host_link.bits_per_second, evs,
      quoted(directory.host_path(host) + "/state"));
  for (unsigned plane = 0; plane < topology.planes(); ++plane)
    text += plane_config(routing, directory, switches, plane, host);
  if (switches != SwitchKind::kProcess) text += srv6_routes(routing, host);
  return text;
}

void write_host_configs(const fabric::Routing& routing, const Directory& directory,
                        SwitchKind switches) {
  for (unsigned host = 0; host < routing.topology().hosts(); ++host) {
    std::ofstream file(directory.config_path(host));
    file << host_config(routing, directory, switches, host);
    file.close();
    if (!file) throw std::runtime_error(directory.config_path(host) + ": cannot be written");
  }
}

HostEnvironment host_environment(const Directory& directory, unsigned host, SwitchKind switches) {
  return {.set = {{"MRC_CONFIG", directory.config_path(host)},
                  {"MRC_LAB", directory.name()},
                  {"MRC_LAB_HOST", std::to_string(host)},
                  {"MRC_LAB_ADDRESS", management_address(switches, host)},
                  {"MRC_LAB_GID", text_of(host_address(0, host))}},
          // Hosts that do not agree about these do not reach each other.
          .unset = {"MRC_IFACES", "MRC_PLANES", "MRC_EVS", "MRC_PORT", "MRC_STATE_DIR"}};
}

}  // namespace mrc::lab
