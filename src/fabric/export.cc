#include "fabric/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "base/assert.h"
#include "fabric/export_queues.h"
#include "fabric/input_error.h"
#include "fabric/node_text.h"

namespace mrc::fabric {
namespace {

// A route and the port it leaves through, all as text.
struct TextRoute {
  std::string port;
  std::string prefix;    // of the neighbour's uSID
  std::string next_hop;  // its link-local address
  std::string neighbour;
};

struct TextTable {
  std::string name;
  std::vector<std::string> locators;  // of the own uSIDs; with "/48" their prefixes
  std::string link_local;             // own address on every port
  std::vector<TextRoute> routes;
};

std::string address_text(const wire::IpAddress& address) {
  return std::string(wire::format_address(address).view());
}

std::string locator_of(wire::UsidBlock block, wire::Usid usid) {
  const std::array<wire::Usid, 1> path{usid};
  return address_text(wire::build_carrier(block, path).value());
}

std::string link_local_of(wire::Usid usid) {
  return address_text(wire::ipv6_address(0xFE80'0000'0000'0000, static_cast<std::uint16_t>(usid)));
}

TextTable text_table(const Routing& routing, const Node& at, const PortNames& ports) {
  const wire::UsidBlock block = routing.block_of(at.plane);
  const wire::Usid own = routing.usid_of(at);
  TextTable table;
  table.name = node_name(at);
  for (unsigned cable = 0; cable < routing.usids_of(at.kind); ++cable)
    table.locators.push_back(locator_of(block, routing.usid_of(at, cable)));
  table.link_local = link_local_of(own);
  unsigned number = ports.first;
  for (const Route& route : routing.table(at)) {
    table.routes.push_back({fmt::format("{}{}", ports.prefix, number),
                            locator_of(block, route.usid) + "/48",
                            link_local_of(routing.usid_of(route.next)), node_name(route.next)});
    number += ports.step;
  }
  return table;
}

// The device of the own uSIDs, and the routes that make them: `ip` commands, each behind `start`.
std::string own_usids(const TextTable& table, const std::string& sid_device,
                      const std::string& start) {
  std::string text;
  const auto out = std::back_inserter(text);
  if (!sid_device.empty()) {
    fmt::format_to(out,
                   "{1}ip link show dev {0} >/dev/null 2>&1 || ip link add {0} type dummy\n"
                   "{1}ip link set dev {0} up\n",
                   sid_device, start);
  }
  for (const std::string& locator : table.locators)
    fmt::format_to(out,
                   "{}ip -6 route replace {}/48 encap seg6local action End flavors next-csid "
                   "lblen 32 nflen 16 dev {}\n",
                   start, locator, sid_device.empty() ? table.routes.front().port : sid_device);
  return text;
}

std::string linux_script(const TextTable& table, const std::string& sid_device) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "#!/bin/sh\n# {}: uSID {}/48\nset -e\n", table.name, table.locators[0]);
  fmt::format_to(out, "sysctl -q -w net.ipv6.conf.all.forwarding=1\n");
  for (const TextRoute& route : table.routes) {
    fmt::format_to(out, "ip link set dev {} up\n", route.port);
    fmt::format_to(out, "ip -6 addr replace {}/64 dev {} nodad\n", table.link_local, route.port);
  }
  text += own_usids(table, sid_device, "");
  for (const TextRoute& route : table.routes) {
    fmt::format_to(out, "ip -6 route replace {} via {} dev {}  # {}\n", route.prefix,
                   route.next_hop, route.port, route.neighbour);
  }
  return text;
}

void add_frr_ports(const TextTable& table, std::string& text) {
  const auto out = std::back_inserter(text);
  for (const TextRoute& route : table.routes) {
    fmt::format_to(out, "interface {}\n description {}\n ipv6 address {}/64\nexit\n!\n", route.port,
                   route.neighbour, table.link_local);
  }
  for (const TextRoute& route : table.routes)
    fmt::format_to(out, "ipv6 route {} {} {}\n", route.prefix, route.next_hop, route.port);
}

std::string locator_name(std::size_t number) {
  return number == 0 ? "MRC" : fmt::format("MRC{}", number);
}

std::string frr_config(const TextTable& table) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "! {}: uSID {}/48\nipv6 forwarding\n!\n", table.name, table.locators[0]);
  add_frr_ports(table, text);
  fmt::format_to(out, "!\nsegment-routing\n srv6\n  locators\n");
  for (std::size_t i = 0; i < table.locators.size(); ++i)
    fmt::format_to(out,
                   "   locator {}\n"
                   "    prefix {}/48 block-len 32 node-len 16 func-bits 0\n"
                   "    behavior usid\n"
                   "   exit\n"
                   "   !\n",
                   locator_name(i), table.locators[i]);
  fmt::format_to(out, "  exit\n  !\n  static-sids\n");
  for (std::size_t i = 0; i < table.locators.size(); ++i)
    fmt::format_to(out, "   sid {}/48 locator {} behavior uN\n", table.locators[i],
                   locator_name(i));
  fmt::format_to(out, "  exit\n  !\n exit\n !\nexit\n!\n");
  return text;
}

// FRR 8 has no static SIDs: the kernel is given them by commands that stand in the comments, and
// zebra leaves them alone. Routes and addresses are FRR's.
std::string frr8_config(const TextTable& table, const std::string& sid_device) {
  std::string text = fmt::format("! {}: uSID {}/48\n! Before FRR starts, as root:\n", table.name,
                                 table.locators[0]) +
                     own_usids(table, sid_device, "!$ ") + "!\nipv6 forwarding\n!\n";
  add_frr_ports(table, text);
  return text + "!\n";
}

// The names in these tables need no escapes: digits, letters, colons and slashes.
std::string sonic_config(const TextTable& table, const std::string& queue_tables) {
  std::string text;
  const auto out = std::back_inserter(text);
  std::string locators;
  std::string sids;
  for (std::size_t i = 0; i < table.locators.size(); ++i) {
    const char* const comma = i + 1 < table.locators.size() ? "," : "";
    locators += fmt::format(
        "    \"{}\": {{\"prefix\": \"{}\", \"block_len\": \"32\", \"node_len\": \"16\", "
        "\"func_len\": \"0\"}}{}\n",
        locator_name(i), table.locators[i], comma);
    sids +=
        fmt::format("    \"{}|{}/48\": {{\"action\": \"uN\", \"decap_dscp_mode\": \"pipe\"}}{}\n",
                    locator_name(i), table.locators[i], comma);
  }
  fmt::format_to(out,
                 "{{\n  \"SRV6_MY_LOCATORS\": {{\n{}  }},\n  \"SRV6_MY_SIDS\": {{\n{}  }},\n"
                 "  \"INTERFACE\": {{\n",
                 locators, sids);
  const auto comma = [&table](const TextRoute& route) {
    return &route == &table.routes.back() ? "" : ",";
  };
  for (const TextRoute& route : table.routes) {
    fmt::format_to(out,
                   "    \"{0}\": {{\"ipv6_use_link_local_only\": \"enable\"}},\n"
                   "    \"{0}|{1}/64\": {{}}{2}\n",
                   route.port, table.link_local, comma(route));
  }
  fmt::format_to(out, "  }},\n  \"STATIC_ROUTE\": {{\n");
  for (const TextRoute& route : table.routes) {
    fmt::format_to(out, "    \"default|{}\": {{\"nexthop\": \"{}\", \"ifname\": \"{}\"}}{}\n",
                   route.prefix, route.next_hop, route.port, comma(route));
  }
  fmt::format_to(out, "  }},\n{}}}\n", queue_tables);
  return text;
}

std::vector<PortQueues> port_queues(const Routing& routing, const Node& at, const TextTable& table,
                                    bool trims) {
  // Time in the hosts, beside the way, until an answer is there.
  constexpr Picoseconds kInHosts = 4'000'000;
  const std::uint64_t bdp = plane_bdp_bytes(routing.topology(), kInHosts);
  std::vector<PortQueues> ports;
  const std::vector<Route> routes = routing.table(at);
  for (std::size_t i = 0; i < routes.size(); ++i) {
    const bool faces_host = routes[i].next.kind == NodeKind::kHost;
    ports.push_back({table.routes[i].port, make_queue_policy({}, bdp, trims, faces_host)});
  }
  return ports;
}

void check_device_name(const std::string& name, const char* what) {
  // Linux allows 15 characters; five are left for a number.
  constexpr std::size_t kMaxLength = 10;
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
  if (plain && name.size() <= kMaxLength) return;
  throw InputError(fmt::format("{} '{}' must be up to {} letters, digits, '_', '-' or '.'", what,
                               name, kMaxLength));
}

}  // namespace

PortNames default_port_names(ExportFormat format) {
  if (format == ExportFormat::kSonic) return {"Ethernet", 0, 1};
  return {"swp", 1, 1};
}

void check_export(const ExportOptions& options) {
  check_device_name(options.ports.prefix, "port prefix");
  if (options.ports.prefix.empty()) throw InputError("the port prefix is empty");
  check_device_name(options.sid_device, "uSID device");
  if (options.ports.step == 0) throw InputError("the port step must be above 0");
  if (options.ports.first > 9'999 || options.ports.step > 64)
    throw InputError("the first port may be up to 9999 and the step up to 64");
}

std::string export_switch(const Routing& routing, const Node& at, const ExportOptions& options) {
  MRC_ASSERT(at.kind != NodeKind::kHost);
  const TextTable table = text_table(routing, at, options.ports);
  switch (options.format) {
    case ExportFormat::kLinux:
      return linux_script(table, options.sid_device);
    case ExportFormat::kTc:
      return tc_script(table.name, port_queues(routing, at, table, /*trims=*/false), {});
    case ExportFormat::kFrr:
      return frr_config(table);
    case ExportFormat::kFrr8:
      return frr8_config(table, options.sid_device);
    case ExportFormat::kSonic:
      return sonic_config(table,
                          sonic_queue_tables(port_queues(routing, at, table, options.trims), {}));
  }
  return "";
}

std::string export_file_name(const Node& at, ExportFormat format) {
  const char* suffix = "sh";
  if (format == ExportFormat::kTc) suffix = "tc.sh";
  if (format == ExportFormat::kFrr) suffix = "conf";
  if (format == ExportFormat::kFrr8) suffix = "frr8.conf";
  if (format == ExportFormat::kSonic) suffix = "json";
  return fmt::format("plane{}-{}-{}.{}", at.plane, node_kind_name(at.kind), at.index, suffix);
}

Node parse_switch(std::string_view text, const Topology& topology) {
  const std::size_t slash = text.find('/');
  const NodeSet node = parse_node_set(text.substr(0, slash), topology);
  std::optional<unsigned> plane = 0;
  if (slash != std::string_view::npos) {
    plane = parse_plane(text.substr(slash + 1), topology);
  } else if (topology.planes() > 1) {
    throw InputError(quoted(text) + " names no plane; add /plane:N");
  }
  if (node.kind == NodeKind::kHost || !node.number || !plane)
    throw InputError(quoted(text) + " is no switch; write one such as t0:3/plane:0");
  return {node.kind, static_cast<std::uint8_t>(*plane), *node.number};
}

}  // namespace mrc::fabric
