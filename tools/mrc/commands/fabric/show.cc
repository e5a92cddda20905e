#include "commands/fabric/show.h"

#include <fmt/core.h>

#include <string>

#include "fabric/presets.h"
#include "json_writer.h"
#include "text.h"

namespace mrc::tool::fabric_view {
namespace {

using fabric::LinkTier;
using fabric::Node;
using fabric::NodeKind;
using fabric::Routing;
using fabric::Topology;

struct Tier {
  NodeKind kind;
  unsigned switches;  // per plane
  unsigned down;      // ports
  unsigned up;
};

// From the hosts up.
std::vector<Tier> tiers_of(const Topology& t) {
  std::vector<Tier> tiers{
      {NodeKind::kT0, t.spec().t0, t.hosts_per_t0(), t.uplinks_per_t0()},
      {NodeKind::kT1, t.spec().t1, t.t0_per_pod() * t.cables(), t.t2_per_group()}};
  if (t.three_tier()) tiers.push_back({NodeKind::kT2, t.spec().t2, t.spec().pods, 0});
  return tiers;
}

std::string prefix_text(const Routing& routing, unsigned plane, wire::Usid usid) {
  const auto block = static_cast<std::uint32_t>(routing.block_of(plane));
  return fmt::format("{:x}:{:x}:{:x}::/48", block >> 16, block & 0xFFFF,
                     static_cast<unsigned>(usid));
}

// Bandwidth of a T0's hosts over that of its uplinks.
double oversubscription(const Topology& t) {
  const auto rate = [&t](LinkTier tier) {
    return static_cast<double>(t.link_class(tier).bits_per_second);
  };
  return t.hosts_per_t0() * rate(LinkTier::kHost) / (t.uplinks_per_t0() * rate(LinkTier::kT0T1));
}

std::string link_text(const Topology& t, LinkTier tier) {
  const fabric::LinkClass& link = t.link_class(tier);
  return fmt::format("{}, {:g} us", bit_rate(static_cast<double>(link.bits_per_second)),
                     static_cast<double>(link.delay_ps) / 1e6);
}

// "cable:2" where there are several between the two.
std::string cable_text(const Topology& t, const fabric::Route& route) {
  const fabric::Link link = t.describe(route.link);
  return link.tier == LinkTier::kT0T1 && t.cables() > 1 ? fmt::format("cable:{}", link.cable) : "";
}

void json_link(JsonWriter& json, const char* key, const fabric::LinkClass& link) {
  json.begin_object(key);
  json.value("bits_per_second", link.bits_per_second);
  json.value("delay_us", static_cast<double>(link.delay_ps) / 1e6);
  json.end_object();
}

}  // namespace

void print_presets() {
  for (const fabric::Preset& preset : fabric::presets())
    fmt::print("{:<18} {}\n", preset.name, preset.summary);
}

void print_summary(const Routing& routing) {
  const Topology& t = routing.topology();
  fmt::print("{} on {}, {} tiers, {}\n", counted(t.hosts(), "host", "hosts"),
             counted(t.planes(), "plane", "planes"), t.three_tier() ? "three" : "two",
             counted(t.switches(), "switch", "switches"));
  if (t.spec().pods > 1) fmt::print("  {:<18} {}\n", "pods", t.spec().pods);
  if (t.cables() > 1)
    fmt::print("  {:<18} {} between a T0 and a T1\n", "parallel cables", t.cables());
  for (const Tier& tier : tiers_of(t)) {
    fmt::print("  {:<18} {} per plane, {} ports down, {} up, {} routes\n",
               fmt::format("{} switches", fabric::node_kind_name(tier.kind)),
               grouped(tier.switches), grouped(tier.down), grouped(tier.up),
               grouped(tier.down + tier.up));
  }
  fmt::print("  {:<18} {}\n", "host links", link_text(t, LinkTier::kHost));
  fmt::print("  {:<18} {}\n", "t0-t1 links", link_text(t, LinkTier::kT0T1));
  if (t.three_tier()) fmt::print("  {:<18} {}\n", "t1-t2 links", link_text(t, LinkTier::kT1T2));
  fmt::print("  {:<18} {:g}\n", "oversubscription", oversubscription(t));
  fmt::print("  {:<18} {} per plane, {} in all\n", "paths", grouped(t.paths_per_plane()),
             grouped(std::uint64_t{t.paths_per_plane()} * t.planes()));
  fmt::print("  {:<18} {} links, {} switches\n", "longest path", t.longest_hops(),
             t.longest_hops() - 1);
  fmt::print("  {:<18} {}\n", "cables", grouped(t.link_count() / 2));
}

void print_summary_json(const Routing& routing) {
  const Topology& t = routing.topology();
  JsonWriter json(stdout);
  json.begin_object();
  json.value("schema", "mrc.fabric/1");
  json.value("planes", t.planes());
  json.value("hosts", t.hosts());
  json.value("pods", t.spec().pods);
  json.value("cables_t0_t1", t.cables());
  json.value("switches", t.switches());
  json.begin_array("tiers");
  for (const Tier& tier : tiers_of(t)) {
    json.begin_object();
    json.value("tier", fabric::node_kind_name(tier.kind));
    json.value("switches_per_plane", tier.switches);
    json.value("ports_down", tier.down);
    json.value("ports_up", tier.up);
    json.end_object();
  }
  json.end_array();
  json_link(json, "host_link", t.link_class(LinkTier::kHost));
  json_link(json, "t0_t1_link", t.link_class(LinkTier::kT0T1));
  if (t.three_tier()) json_link(json, "t1_t2_link", t.link_class(LinkTier::kT1T2));
  json.value("oversubscription", oversubscription(t));
  json.value("paths_per_plane", t.paths_per_plane());
  json.value("longest_path_links", t.longest_hops());
  json.value("cables", t.link_count() / 2);
  json.end_object();
}

void print_table(const Routing& routing, const Node& at) {
  fmt::print("{} is {}\n", node_name(at), prefix_text(routing, at.plane, routing.usid_of(at)));
  fmt::print("{:>5}  {:<24} {}\n", "port", "prefix", "neighbour");
  unsigned port = 0;
  for (const fabric::Route& route : routing.table(at)) {
    const std::string which = cable_text(routing.topology(), route);
    fmt::print("{:>5}  {:<24} {}{}\n", port++, prefix_text(routing, at.plane, route.usid),
               node_name(route.next), which.empty() ? "" : " " + which);
  }
}

void print_table_json(const Routing& routing, const Node& at) {
  JsonWriter json(stdout);
  json.begin_object();
  json.value("schema", "mrc.fabric.table/1");
  json.value("switch", node_name(at));
  json.value("prefix", prefix_text(routing, at.plane, routing.usid_of(at)));
  json.begin_array("routes");
  std::uint32_t port = 0;
  for (const fabric::Route& route : routing.table(at)) {
    json.begin_object();
    json.value("port", port++);
    json.value("prefix", prefix_text(routing, at.plane, route.usid));
    json.value("neighbour", node_name(route.next));
    json.value("cable", routing.topology().describe(route.link).cable);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

}  // namespace mrc::tool::fabric_view
