#include "fabric/build_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "fabric/input_error.h"

namespace mrc::fabric {
namespace {

constexpr std::uint64_t kMaxHosts = 0x4000'0000;

std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

std::string switch_port(const PortNames& names, std::uint64_t place) {
  return fmt::format("{}{}", names.prefix, names.first + place * names.step);
}

std::string device(const Node& node) {
  return fmt::format("{}:{}", node_kind_name(node.kind), node.index);
}

double gbps(const LinkClass& link) { return static_cast<double>(link.bits_per_second) / 1e9; }
double microseconds(const LinkClass& link) { return static_cast<double>(link.delay_ps) / 1e6; }

}  // namespace

TopologySpec buildable(const PlanInput& input, const FabricPlan& plan) {
  if (plan.tiers != 2 || plan.ports_per_nic != 1 || plan.islands != 1)
    throw InputError("only one fabric of two tiers with one port of a NIC per plane is built");
  const unsigned uplinks = plan.ports_per_switch / 2;
  const std::uint64_t t0 = plan.switches_per_tier.at(0) / plan.planes;
  std::uint64_t t1 = std::max<std::uint64_t>(plan.switches_per_tier.at(1) / plan.planes, 1);
  while (uplinks % t1 != 0)
    ++t1;
  const std::uint64_t hosts = divide_up(input.nics, t0) * t0;
  if (hosts > kMaxHosts) throw InputError("that is more hosts than a fabric here can have");
  TopologySpec spec;
  spec.planes = plan.planes;
  spec.hosts = static_cast<unsigned>(hosts);
  spec.t0 = static_cast<unsigned>(t0);
  spec.t1 = static_cast<unsigned>(t1);
  spec.cables = static_cast<unsigned>(uplinks / t1);
  for (LinkClass* link : {&spec.host_link, &spec.t0_t1_link, &spec.t1_t2_link})
    link->bits_per_second = static_cast<std::uint64_t>(std::llround(plan.port_gbps * 1e9));
  return Topology(spec).spec();
}

std::string topology_text(const TopologySpec& spec) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "planes = {}\nhosts = {}\nt0 = {}\nt1 = {}\n", spec.planes, spec.hosts,
                 spec.t0, spec.t1);
  if (spec.t2 > 0) fmt::format_to(out, "pods = {}\nt2 = {}\n", spec.pods, spec.t2);
  if (spec.cables > 1) fmt::format_to(out, "cables = {}\n", spec.cables);
  fmt::format_to(out, "gbps = {}\ndelay_us = {}\n", gbps(spec.host_link),
                 microseconds(spec.host_link));
  if (spec.t0_t1_link != spec.host_link)
    fmt::format_to(out, "uplink_gbps = {}\nuplink_delay_us = {}\n", gbps(spec.t0_t1_link),
                   microseconds(spec.t0_t1_link));
  if (spec.t2 > 0 && spec.t1_t2_link != spec.t0_t1_link)
    fmt::format_to(out, "core_gbps = {}\ncore_delay_us = {}\n", gbps(spec.t1_t2_link),
                   microseconds(spec.t1_t2_link));
  return text;
}

std::string cable_lines(const Routing& routing, unsigned plane, const PortNames& switch_ports,
                        const HostPortNames& host_ports) {
  const Topology& topology = routing.topology();
  std::string text;
  const auto out = std::back_inserter(text);
  for (const Node& lower : all_switches(topology)) {
    if (lower.plane != plane) continue;
    const std::vector<Route> table = routing.table(lower);
    for (std::size_t place = 0; place < table.size(); ++place) {
      const Node& other = table[place].next;
      const std::string port = switch_port(switch_ports, place);
      if (other.kind == NodeKind::kHost) {
        fmt::format_to(out, "{},{}{},{},{},{}\n", device(other), host_ports.prefix,
                       host_ports.first + plane, device(lower), port, plane);
      } else if (other.kind > lower.kind) {
        const std::uint64_t there = routing.port_of(topology.reverse(table[place].link));
        fmt::format_to(out, "{},{},{},{},{}\n", device(lower), port, device(other),
                       switch_port(switch_ports, there), plane);
      }
    }
  }
  return text;
}

}  // namespace mrc::fabric
