#include "lab/host_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "fabric/host_address.h"
#include "fabric/host_file.h"
#include "lab/cables.h"
#include "wire/ip_address.h"

namespace mrc::lab {
namespace {

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

// Whether devices choose the paths of their packets themselves, and so know which parts of the
// fabric each crosses. One choice is what a route can hold; and more paths than a device prepares
// are used by all hosts together only where the lab deals them out.
bool devices_choose_paths(const fabric::Topology& topology, SwitchKind switches) {
  return switches != SwitchKind::kProcess ||
         (!topology.three_tier() && topology.paths_per_plane() <= kMaxEvsPerPort);
}

std::string usid_block(const fabric::Routing& routing, unsigned plane) {
  const auto block = static_cast<std::uint32_t>(routing.block_of(plane));
  return fmt::format("usid_block = \"{:x}:{:x}::/32\"\n", block >> 16, block & 0xFFFF);
}

std::string plane_config(const fabric::Routing& routing, const Directory& directory,
                         SwitchKind switches, unsigned plane, unsigned host) {
  const std::string text =
      fmt::format("[[device.mrc0.plane]]\naddress = \"{}/{}\"\n",
                  text_of(fabric::host_address(plane, host)), fabric::kHostPrefixBits);
  if (switches == SwitchKind::kProcess) {
    return text + "wire = " + quoted(Cables::socket_path(directory.ports_path(), plane, host)) +
           "\n" + usid_block(routing, plane);
  }
  const NetnsPlan plan(routing, directory.namespace_prefix(), switches);
  return text +
         fmt::format("interface = \"{}\"\nnext_hop_mac = \"{}\"\n", NetnsPlan::host_port(plane),
                     mac_text(plan.gateway_mac(plane, host))) +
         usid_block(routing, plane);
}

}  // namespace

std::string host_config(const fabric::Routing& routing, const Directory& directory,
                        LabSwitches switches, unsigned host) {
  const fabric::Topology& topology = routing.topology();
  const unsigned evs = std::min(topology.paths_per_plane(), kMaxEvsPerPort);
  std::string text = fmt::format(
      "# Host {} of lab {}. Made by `mrc lab up`, gone with `mrc lab down`.\n"
      "[device.mrc0]\n"
      "backend = \"wire\"\n"
      "port_rate = {}\n"
      "evs_per_port = {}\n"
      "trimming = {}\n"
      "directory = {}\n",
      host, directory.name(), topology.spec().host_link.bits_per_second, evs, switches.trim,
      quoted(directory.host_path(host) + "/state"));
  for (unsigned plane = 0; plane < topology.planes(); ++plane)
    text += plane_config(routing, directory, switches.kind, plane, host);
  if (devices_choose_paths(topology, switches.kind)) text += fabric::route_tables(routing, host);
  return text;
}

void write_host_configs(const fabric::Routing& routing, const Directory& directory,
                        LabSwitches switches) {
  for (unsigned host = 0; host < routing.topology().hosts(); ++host) {
    std::ofstream file(directory.config_path(host));
    file << host_config(routing, directory, switches, host);
    file.close();
    if (!file) throw std::runtime_error(directory.config_path(host) + ": " + std::strerror(errno));
  }
}

HostEnvironment host_environment(const Directory& directory, unsigned host, SwitchKind switches) {
  return {.set = {{"MRC_CONFIG", directory.config_path(host)},
                  {"MRC_LAB", directory.name()},
                  {"MRC_LAB_HOST", std::to_string(host)},
                  {"MRC_LAB_ADDRESS", management_address(switches, host)},
                  {"MRC_LAB_GID", text_of(fabric::host_address(0, host))}},
          // Hosts that do not agree about these do not reach each other.
          .unset = {"MRC_IFACES", "MRC_PLANES", "MRC_EVS", "MRC_PORT", "MRC_STATE_DIR"}};
}

}  // namespace mrc::lab
