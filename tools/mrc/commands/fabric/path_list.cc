#include "commands/fabric/path_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "fabric/input_error.h"
#include "json_writer.h"
#include "text.h"

namespace mrc::tool::fabric_view {
namespace {

using fabric::InputError;
using fabric::Path;
using fabric::Routing;
using fabric::Topology;

struct Ends {
  unsigned from = 0;
  unsigned to = 0;
};

unsigned host_number(const std::optional<unsigned>& host, const char* flag, const Topology& t) {
  if (!host) throw InputError(fmt::format("{} HOST is needed", flag));
  if (*host >= t.hosts())
    throw InputError(fmt::format("{} {}: the hosts are 0 to {}", flag, *host, t.hosts() - 1));
  return *host;
}

Ends read_ends(const PathQuery& query, const Topology& t) {
  const Ends ends{host_number(query.from, "--from", t), host_number(query.to, "--to", t)};
  if (ends.from == ends.to) throw InputError("--from and --to are the same host");
  return ends;
}

Path path_of_entropy(const std::string& text, const Routing& routing) {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  const char* const first = text.data() + (hex ? 2 : 0);
  const char* const last = text.data() + text.size();
  std::uint32_t entropy = 0;
  const auto [end, error] = std::from_chars(first, last, entropy, hex ? 16 : 10);
  if (error != std::errc() || end != last)
    throw InputError(fmt::format("--ev {}: not a number of 32 bits", text));
  Path path;
  if (!routing.path_of(entropy, path))
    throw InputError(fmt::format("--ev {}: no path of this fabric has it", text));
  return path;
}

// One for every way a packet can go; what it does not meet is 0.
std::vector<Path> all_paths(const Routing& routing, const Ends& ends) {
  const Topology& t = routing.topology();
  const unsigned hops = t.hops(ends.from, ends.to);
  const unsigned up_choices = hops > 2 ? t.uplinks_per_t0() : 1;
  const unsigned t2_choices = hops > 4 ? t.t2_per_group() : 1;
  std::vector<Path> paths;
  for (unsigned plane = 0; plane < t.planes(); ++plane) {
    for (unsigned up = 0; up < up_choices; ++up) {
      for (unsigned t2 = 0; t2 < t2_choices; ++t2) {
        paths.push_back({static_cast<std::uint8_t>(plane), static_cast<std::uint16_t>(up),
                         static_cast<std::uint16_t>(t2)});
      }
    }
  }
  return paths;
}

std::vector<Path> select_paths(const Routing& routing, const Ends& ends, const PathQuery& query) {
  if (!query.entropy.empty()) return {path_of_entropy(query.entropy, routing)};
  std::vector<Path> paths = all_paths(routing, ends);
  const Topology& t = routing.topology();
  const auto differs = [&query, &t](const Path& path) {
    return (query.plane && *query.plane != path.plane) ||
           (query.t1 && *query.t1 != t.t1_of_uplink(path.up)) || (query.t2 && *query.t2 != path.t2);
  };
  paths.erase(std::remove_if(paths.begin(), paths.end(), differs), paths.end());
  if (paths.empty()) throw InputError("no path has this plane, T1 and T2");
  return paths;
}

// "host:0 t0:0 t1:3 t0:2 host:9"; of several cables " cable:1" stands at the end.
std::string route_text(const Routing& routing, const Ends& ends, const Path& path) {
  std::string text = fmt::format("host:{}", ends.from);
  const Routing::LinkList list = routing.links(ends.from, ends.to, path);
  for (unsigned i = 0; i < list.count; ++i) {
    const fabric::Node node = routing.topology().describe(list.links[i]).to;
    text += fmt::format(" {}:{}", fabric::node_kind_name(node.kind), node.index);
  }
  const Topology& t = routing.topology();
  if (t.cables() > 1 && list.count > 2)
    text += fmt::format(" cable:{}", t.cable_of_uplink(path.up));
  return text;
}

std::string carrier_text(const Routing& routing, const Ends& ends, const Path& path) {
  return std::string(wire::format_address(routing.carrier(ends.from, ends.to, path)).view());
}

void print_text(const Routing& routing, const Ends& ends, const std::vector<Path>& paths) {
  fmt::print("host {} to host {}: {} of {} links\n", ends.from, ends.to,
             counted(paths.size(), "path", "paths"), routing.topology().hops(ends.from, ends.to));
  fmt::print("{:<10}  {:>5}  {:<39}  {}\n", "EV", "plane", "carrier", "route");
  for (const Path& path : paths) {
    fmt::print("{:#010x}  {:>5}  {:<39}  {}\n", routing.entropy_of(path), path.plane,
               carrier_text(routing, ends, path), route_text(routing, ends, path));
  }
}

void print_json(const Routing& routing, const Ends& ends, const std::vector<Path>& paths) {
  JsonWriter json(stdout);
  json.begin_object();
  json.value("schema", "mrc.fabric.paths/1");
  json.value("from", ends.from);
  json.value("to", ends.to);
  json.value("links", routing.topology().hops(ends.from, ends.to));
  json.begin_array("paths");
  for (const Path& path : paths) {
    json.begin_object();
    json.value("ev", routing.entropy_of(path));
    json.value("plane", std::uint32_t{path.plane});
    json.value("t1", routing.topology().t1_of_uplink(path.up));
    json.value("cable", routing.topology().cable_of_uplink(path.up));
    json.value("t2", std::uint32_t{path.t2});
    json.value("carrier", carrier_text(routing, ends, path));
    json.value("route", route_text(routing, ends, path));
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

}  // namespace

void print_paths(const Routing& routing, const PathQuery& query) {
  const Topology& t = routing.topology();
  Ends ends;
  std::vector<Path> paths(1);
  if (query.carrier.empty()) {
    ends = read_ends(query, t);
    paths = select_paths(routing, ends, query);
  } else {
    const Result<wire::IpAddress> carrier = wire::parse_address(query.carrier);
    unsigned source_t0 = 0;
    if (!carrier.ok() || !routing.read_carrier(carrier.value(), source_t0, ends.to, paths[0]))
      throw InputError(fmt::format("--carrier {}: no host sends on it", query.carrier));
    // The carrier does not name its sender; any other host of that T0 stands for it.
    ends.from = source_t0 * t.hosts_per_t0();
    if (ends.from == ends.to && t.hosts_per_t0() > 1) ++ends.from;
  }
  query.json ? print_json(routing, ends, paths) : print_text(routing, ends, paths);
}

}  // namespace mrc::tool::fabric_view
