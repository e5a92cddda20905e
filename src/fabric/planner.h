// What a fabric for a number of NICs takes: switches, optics, power, and what a failure costs.
//
// All fabrics here are Clos networks without oversubscription: every switch below the top has as
// many ports up as down. A design of P planes gives every NIC one P-th of its speed in each plane,
// which makes the ports slower, the switches wider and the tiers fewer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mrc::fabric {

struct PlanInput {
  std::uint64_t nics = 131'072;
  double nic_gbps = 800;
  unsigned planes = 8;
  double switch_tbps = 51.2;
  // Of one switch port of the design with one plane. A faster NIC takes several ports.
  std::optional<double> port_gbps;   // that of the NIC
  unsigned max_ports = 0;            // that a switch can be split into; 0 = no limit
  std::optional<double> optic_gbps;  // of one transceiver; that of the NIC
  std::optional<double> switch_watts;
  std::optional<double> optic_watts;
};

struct FabricPlan {
  unsigned planes = 1;
  unsigned tiers = 2;
  double port_gbps = 0;
  unsigned ports_per_switch = 0;
  unsigned ports_per_nic = 1;  // in each plane
  std::uint64_t max_nics = 0;  // one such fabric can hold
  std::uint64_t islands = 1;   // fabrics without connection to each other that hold them all
  std::vector<std::uint64_t> switches_per_tier;  // over all planes and islands, T0 first
  std::uint64_t switches = 0;
  std::uint64_t links = 0;
  std::uint64_t optics = 0;
  unsigned longest_path_switches = 0;
  unsigned nics_per_t0 = 0;
  std::uint64_t paths = 0;  // between NICs that are far apart, over all planes
  // Shares of bandwidth: of a NIC with one of its links or its T0, of a T0 with one of its uplinks
  // or a T1.
  double lost_with_nic_link = 0;
  double lost_with_t0 = 0;
  double lost_with_t0_uplink = 0;
  double lost_with_t1 = 0;
  std::optional<double> watts;  // known when both inputs are
};

struct FabricComparison {
  FabricPlan multi_plane;  // two tiers
  FabricPlan three_tier;   // one plane
  // One plane with a fourth tier, where three tiers cannot join all NICs.
  std::optional<FabricPlan> four_tier;
};

// Throws InputError when the numbers make no sense or two tiers cannot hold so many NICs.
FabricComparison plan_fabric(const PlanInput& input);

}  // namespace mrc::fabric
