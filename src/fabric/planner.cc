#include "fabric/planner.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/types.h"
#include "fabric/input_error.h"

namespace mrc::fabric {
namespace {

constexpr std::uint64_t kMaxNics = 1'000'000'000;

std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

// How often `part` goes into `whole`, forgiving what decimal fractions lose.
double ratio(double whole, double part) { return std::floor(whole / part + 1e-9); }

void require_positive(double value, const char* what) {
  if (!(value > 0 && value < 1e9)) throw InputError(fmt::format("{} must be above 0", what));
}

void check(const PlanInput& input) {
  if (input.nics < 1 || input.nics > kMaxNics)
    throw InputError("the number of NICs must be 1 to 1,000,000,000");
  if (input.planes < 1 || input.planes > kMaxPorts)
    throw InputError(fmt::format("planes must be 1 to 16, not {}", input.planes));
  require_positive(input.nic_gbps, "the speed of a NIC");
  require_positive(input.switch_tbps, "the capacity of a switch");
  require_positive(input.port_gbps.value_or(1), "the speed of a port");
  require_positive(input.optic_gbps.value_or(1), "the speed of a transceiver");
  const auto check_watts = [](const std::optional<double>& watts) {
    if (watts && !(*watts >= 0 && *watts < 1e9)) throw InputError("watts must be 0 or more");
  };
  check_watts(input.switch_watts);
  check_watts(input.optic_watts);
}

// Ports of one switch at that speed.
unsigned switch_ports(const PlanInput& input, double port_gbps) {
  const double ports = ratio(input.switch_tbps * 1'000, port_gbps);
  const double limit = input.max_ports > 0 ? input.max_ports : 65'536;
  if (ports < 4) {
    throw InputError(fmt::format("a switch of {:g} Tb/s has only {:g} ports of {:g} Gb/s",
                                 input.switch_tbps, ports, port_gbps));
  }
  if (limit < 4) throw InputError("a switch needs at least 4 ports");
  return static_cast<unsigned>(std::min(ports, limit));
}

// Planes, tiers and ports; nothing that depends on the number of NICs.
FabricPlan shape(const PlanInput& input, unsigned planes, unsigned tiers, double port_gbps) {
  FabricPlan plan;
  plan.planes = planes;
  plan.tiers = tiers;
  plan.port_gbps = port_gbps;
  plan.ports_per_switch = switch_ports(input, port_gbps);
  plan.ports_per_nic = static_cast<unsigned>(std::ceil(input.nic_gbps / planes / port_gbps - 1e-9));
  const unsigned half = plan.ports_per_switch / 2;
  if (plan.ports_per_nic > half) {
    throw InputError(fmt::format("a NIC takes {} ports, a T0 switch has only {} for NICs",
                                 plan.ports_per_nic, half));
  }
  plan.nics_per_t0 = half / plan.ports_per_nic;
  std::uint64_t t0 = plan.ports_per_switch;
  plan.paths = std::uint64_t{half} * planes;
  for (unsigned tier = 2; tier < tiers; ++tier) {
    t0 *= half;
    plan.paths *= half;
  }
  plan.max_nics = t0 * plan.nics_per_t0;
  plan.longest_path_switches = 2 * tiers - 1;
  return plan;
}

// Switches of each tier of one plane of one island.
std::vector<std::uint64_t> count_switches(const FabricPlan& plan, std::uint64_t nics) {
  const std::uint64_t half = plan.ports_per_switch / 2;
  std::vector<std::uint64_t> tiers(plan.tiers, divide_up(nics, plan.nics_per_t0));
  tiers.back() = divide_up(tiers.front() * half, plan.ports_per_switch);
  return tiers;
}

void add_islands(FabricPlan& plan, std::uint64_t islands, std::uint64_t nics_each,
                 double optic_gbps) {
  const std::uint64_t half = plan.ports_per_switch / 2;
  const std::vector<std::uint64_t> tiers = count_switches(plan, nics_each);
  const std::uint64_t fabrics = islands * plan.planes;
  const std::uint64_t nic_ports = nics_each * plan.ports_per_nic;
  const std::uint64_t uplinks = tiers.front() * half;  // the same between any two tiers
  const auto modules = [&plan, optic_gbps](std::uint64_t ports) {
    return static_cast<std::uint64_t>(
        std::ceil(static_cast<double>(ports) * plan.port_gbps / optic_gbps - 1e-6));
  };
  plan.switches_per_tier.resize(plan.tiers);
  for (unsigned tier = 0; tier < plan.tiers; ++tier) {
    plan.switches_per_tier[tier] += fabrics * tiers[tier];
    plan.switches += fabrics * tiers[tier];
  }
  plan.links += fabrics * (nic_ports + uplinks * (plan.tiers - 1));
  // Both ends of every link; at the NIC the links of all planes share transceivers.
  plan.optics += islands * nics_each * modules(std::uint64_t{plan.planes} * plan.ports_per_nic);
  plan.optics += fabrics * (modules(nic_ports) + 2 * (plan.tiers - 1) * modules(uplinks));
}

void fill_losses(FabricPlan& plan, std::uint64_t nics) {
  const unsigned half = plan.ports_per_switch / 2;
  plan.lost_with_nic_link = 1.0 / (std::uint64_t{plan.planes} * plan.ports_per_nic);
  plan.lost_with_t0 = 1.0 / plan.planes;
  plan.lost_with_t0_uplink = 1.0 / half;
  // A small fabric of two tiers has fewer T1s than uplinks, and several uplinks to each.
  const std::uint64_t island_nics = std::min(nics, plan.max_nics);
  const std::uint64_t t1 = plan.tiers == 2 ? count_switches(plan, island_nics).back() : half;
  plan.lost_with_t1 =
      static_cast<double>(divide_up(half, std::min<std::uint64_t>(t1, half))) / half;
}

FabricPlan design(const PlanInput& input, unsigned planes, unsigned tiers, double port_gbps) {
  FabricPlan plan = shape(input, planes, tiers, port_gbps);
  const double optic_gbps = input.optic_gbps.value_or(input.nic_gbps);
  const std::uint64_t full = input.nics / plan.max_nics;
  const std::uint64_t rest = input.nics % plan.max_nics;
  plan.islands = full + (rest > 0 ? 1 : 0);
  if (full > 0) add_islands(plan, full, plan.max_nics, optic_gbps);
  if (rest > 0) add_islands(plan, 1, rest, optic_gbps);
  fill_losses(plan, input.nics);
  if (input.switch_watts && input.optic_watts) {
    plan.watts = static_cast<double>(plan.switches) * *input.switch_watts +
                 static_cast<double>(plan.optics) * *input.optic_watts;
  }
  return plan;
}

}  // namespace

FabricComparison plan_fabric(const PlanInput& input) {
  check(input);
  const double port_gbps = input.port_gbps.value_or(input.nic_gbps);
  FabricComparison plans;
  plans.multi_plane = design(input, input.planes, 2, input.nic_gbps / input.planes);
  if (plans.multi_plane.islands > 1) {
    throw InputError(
        fmt::format("two tiers of {}-port switches hold at most {} NICs; more planes or larger "
                    "switches would hold more",
                    plans.multi_plane.ports_per_switch, plans.multi_plane.max_nics));
  }
  plans.three_tier = design(input, 1, 3, port_gbps);
  if (plans.three_tier.islands > 1) plans.four_tier = design(input, 1, 4, port_gbps);
  return plans;
}

}  // namespace mrc::fabric
