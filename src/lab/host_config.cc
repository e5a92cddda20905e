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

}  // namespace

std::string host_config(const fabric::Topology& topology, const Directory& directory,
                        unsigned host) {
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
  for (unsigned plane = 0; plane < topology.planes(); ++plane) {
    text += fmt::format(
        "[[device.mrc0.plane]]\n"
        "address = \"{}/{}\"\n"
        "wire = {}\n",
        wire::format_address(host_address(plane, host)).view(), kHostPrefixBits,
        quoted(Cables::socket_path(directory.ports_path(), plane, host)));
  }
  return text;
}

void write_host_configs(const fabric::Topology& topology, const Directory& directory) {
  for (unsigned host = 0; host < topology.hosts(); ++host) {
    std::ofstream file(directory.config_path(host));
    file << host_config(topology, directory, host);
    file.close();
    if (!file) throw std::runtime_error(directory.config_path(host) + ": cannot be written");
  }
}

HostEnvironment host_environment(const Directory& directory, unsigned host) {
  return {.set = {{"MRC_CONFIG", directory.config_path(host)},
                  {"MRC_LAB", directory.name()},
                  {"MRC_LAB_HOST", std::to_string(host)},
                  {"MRC_LAB_GID", std::string(wire::format_address(host_address(0, host)).view())}},
          .unset = {"MRC_IFACES", "MRC_PLANES", "MRC_EVS", "MRC_STATE_DIR"}};
}

}  // namespace mrc::lab
