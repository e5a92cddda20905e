#include "fabric/host_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/assert.h"
#include "fabric/host_address.h"
#include "wire/ip_address.h"

namespace mrc::fabric {
namespace {

// Paths per plane of a queue pair without a profile; more spread no better and cost memory.
constexpr unsigned kMostEvsPerPort = 32;

unsigned number(wire::Usid usid) { return static_cast<unsigned>(usid); }

std::string text_of(const wire::IpAddress& address) {
  return std::string(wire::format_address(address).view());
}

}  // namespace

std::string route_text(const Routing& routing, unsigned source, unsigned destination) {
  const Topology& topology = routing.topology();
  MRC_ASSERT(!topology.three_tier());
  const UsidList usids = routing.usids(source, destination, {});
  if (topology.t0_of(source) == topology.t0_of(destination))
    return fmt::format("{:x}:{:x}", number(usids[0]), number(usids[1]));
  const std::string follows = topology.cables() > 1 ? fmt::format("/{}", topology.cables()) : "";
  return fmt::format("{:x}:{:x}*{}:{:x}{}:{:x}", number(usids[0]), number(usids[1]),
                     topology.uplinks_per_t0(), number(usids[2]), follows, number(usids[3]));
}

std::string route_tables(const Routing& routing, unsigned host) {
  std::string text;
  for (unsigned other = 0; other < routing.topology().hosts(); ++other) {
    fmt::format_to(std::back_inserter(text),
                   "[[device.mrc0.srv6_route]]\nto = \"{}/128\"\nusids = \"{}\"\n",
                   text_of(host_address(0, other)), route_text(routing, host, other));
  }
  return text;
}

std::string host_file(const Routing& routing, unsigned host, const HostPortNames& ports) {
  const Topology& topology = routing.topology();
  const unsigned t0 = topology.t0_of(host);
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out,
                 "# host:{}, on port {} of t0:{} in every plane (counted from 0)\n"
                 "[device.mrc0]\n"
                 "backend = \"wire\"\n"
                 "port_rate = {}\n"
                 "evs_per_port = {}\n",
                 host, topology.place_at_t0(host), t0, topology.spec().host_link.bits_per_second,
                 std::min(topology.paths_per_plane(), kMostEvsPerPort));
  for (unsigned plane = 0; plane < topology.planes(); ++plane) {
    const auto block = static_cast<std::uint32_t>(routing.block_of(plane));
    fmt::format_to(out,
                   "[[device.mrc0.plane]]\n"
                   "interface = \"{}{}\"\n"
                   "address = \"{}/{}\"\n"
                   "usid_block = \"{:x}:{:x}::/32\"\n"
                   "# next_hop_mac = \"\"  # of the port of t0:{}/plane:{}; to be filled in\n",
                   ports.prefix, ports.first + plane, text_of(host_address(plane, host)),
                   kHostPrefixBits, block >> 16, block & 0xFFFF, t0, plane);
  }
  return text + route_tables(routing, host);
}

}  // namespace mrc::fabric
