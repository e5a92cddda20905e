#include "commands/plan/report.h"

#include <fmt/core.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "json_writer.h"
#include "text.h"

namespace mrc::tool::plan {
namespace {

using fabric::FabricComparison;
using fabric::FabricPlan;
using fabric::PlanInput;

constexpr const char* kTierWords[] = {"no", "one", "two", "three", "four"};

std::vector<const FabricPlan*> columns_of(const FabricComparison& plans) {
  std::vector<const FabricPlan*> columns{&plans.multi_plane, &plans.three_tier};
  if (plans.four_tier) columns.push_back(&*plans.four_tier);
  return columns;
}

// Three significant digits: "12.5 %", "0.391 %", "100 %".
std::string share(double part) { return fmt::format("{:.3g} %", 100 * part); }

std::uint64_t rounded(double value) { return static_cast<std::uint64_t>(std::llround(value)); }

std::string kilowatts(const FabricPlan& plan) {
  return plan.watts ? grouped(rounded(*plan.watts / 1'000)) + " kW" : "-";
}

std::string tier_counts(const FabricPlan& plan) {
  std::string text;
  for (const std::uint64_t count : plan.switches_per_tier)
    text += (text.empty() ? "" : " + ") + grouped(count);
  return text;
}

// One line of the table: a name and a value per design.
class Table {
 public:
  explicit Table(std::vector<const FabricPlan*> columns) : columns_(std::move(columns)) {}

  void row(const char* name, const std::function<std::string(const FabricPlan&)>& value) const {
    std::string line = fmt::format("  {:<28}", name);
    for (const FabricPlan* plan : columns_)
      line += fmt::format(" {:<24}", value(*plan));
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
  }

 private:
  std::vector<const FabricPlan*> columns_;
};

void print_size(const Table& table) {
  table.row("", [](const FabricPlan& p) {
    return fmt::format("{} tiers, {}", kTierWords[p.tiers], counted(p.planes, "plane", "planes"));
  });
  table.row("port speed",
            [](const FabricPlan& p) { return fmt::format("{:g} Gb/s", p.port_gbps); });
  table.row("ports per switch", [](const FabricPlan& p) { return grouped(p.ports_per_switch); });
  table.row("NICs at most", [](const FabricPlan& p) {
    return grouped(p.max_nics) + (p.islands > 1 ? " (1)" : "");
  });
  table.row("switches", [](const FabricPlan& p) { return grouped(p.switches); });
  table.row("  T0 + T1 + ...", tier_counts);
  table.row("links", [](const FabricPlan& p) { return grouped(p.links); });
  table.row("transceivers", [](const FabricPlan& p) { return grouped(p.optics); });
  table.row("power", kilowatts);
}

void print_quality(const Table& table) {
  table.row("longest path", [](const FabricPlan& p) {
    return fmt::format("{} switches", p.longest_path_switches);
  });
  table.row("NICs one switch away", [](const FabricPlan& p) { return grouped(p.nics_per_t0); });
  table.row("paths between far NICs", [](const FabricPlan& p) { return grouped(p.paths); });
  table.row("lost with a NIC link (2)",
            [](const FabricPlan& p) { return share(p.lost_with_nic_link); });
  table.row("lost with a T0 switch (2)", [](const FabricPlan& p) { return share(p.lost_with_t0); });
  table.row("lost with a T0-T1 link (3)",
            [](const FabricPlan& p) { return share(p.lost_with_t0_uplink); });
  table.row("lost with a T1 switch (3)", [](const FabricPlan& p) { return share(p.lost_with_t1); });
}

void json_plan(JsonWriter& json, const FabricPlan& plan) {
  json.begin_object();
  json.value("planes", plan.planes);
  json.value("tiers", plan.tiers);
  json.value("port_gbps", plan.port_gbps);
  json.value("ports_per_switch", plan.ports_per_switch);
  json.value("ports_per_nic", plan.ports_per_nic);
  json.value("max_nics", plan.max_nics);
  json.value("islands", plan.islands);
  json.value("switches", plan.switches);
  json.array("switches_per_tier", plan.switches_per_tier);
  json.value("links", plan.links);
  json.value("optics", plan.optics);
  json.value("longest_path_switches", plan.longest_path_switches);
  json.value("nics_per_t0", plan.nics_per_t0);
  json.value("paths", plan.paths);
  json.value("lost_with_nic_link", plan.lost_with_nic_link);
  json.value("lost_with_t0", plan.lost_with_t0);
  json.value("lost_with_t0_t1_link", plan.lost_with_t0_uplink);
  json.value("lost_with_t1", plan.lost_with_t1);
  plan.watts ? json.value("watts", rounded(*plan.watts)) : json.null("watts");
  json.end_object();
}

double quotient(std::uint64_t part, std::uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

void print_text(const PlanInput& input, const FabricComparison& plans) {
  fmt::print("{} of {:g} Gb/s, switches of {:g} Tb/s, nothing oversubscribed\n\n",
             counted(input.nics, "NIC", "NICs"), input.nic_gbps, input.switch_tbps);
  const Table table(columns_of(plans));
  print_size(table);
  fmt::print("\n");
  print_quality(table);
  fmt::print("\n");
  const FabricPlan& three = plans.three_tier;
  fmt::print(
      "  Two tiers take {} of the switches and {} of the transceivers of three.\n",
      percent(static_cast<double>(plans.multi_plane.switches), static_cast<double>(three.switches)),
      percent(static_cast<double>(plans.multi_plane.optics), static_cast<double>(three.optics)));
  if (three.islands > 1) {
    fmt::print(
        "  (1) counted as {} fabrics that are not joined; joining them takes a fourth tier\n",
        three.islands);
  }
  fmt::print("  (2) of the bandwidth of a NIC  (3) of the bandwidth of a T0's uplinks\n");
  if (!plans.multi_plane.watts) fmt::print("  Power needs --switch-watts and --optic-watts.\n");
}

void print_json(const PlanInput& input, const FabricComparison& plans) {
  JsonWriter json(stdout);
  json.begin_object();
  json.value("schema", "mrc.plan/1");
  json.value("nics", input.nics);
  json.value("nic_gbps", input.nic_gbps);
  json.value("switch_tbps", input.switch_tbps);
  json.begin_array("designs");
  for (const FabricPlan* plan : columns_of(plans))
    json_plan(json, *plan);
  json.end_array();
  json.value("switch_ratio", quotient(plans.multi_plane.switches, plans.three_tier.switches));
  json.value("optic_ratio", quotient(plans.multi_plane.optics, plans.three_tier.optics));
  json.end_object();
}

}  // namespace mrc::tool::plan
