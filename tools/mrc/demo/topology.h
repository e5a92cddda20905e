// The virtual cluster's shape: hosts, and on each plane a layer of T0 switches (leaves) with a
// layer of T1 switches (spines) above. A path is a plane and a T1; every packet goes host, T0, T1,
// T0, host.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "core/ev_profile.h"
#include "wire/ip_address.h"
#include "wire/srv6.h"

namespace mrc::demo {

inline constexpr std::uint64_t kPortBitsPerSecond = 100'000'000'000;

// A direction of a cable.
enum class LinkId : std::uint32_t {};

struct Path {
  PortId plane{1};
  unsigned spine = 0;
};

// Who sends to whom.
struct Flow {
  unsigned source = 0;
  unsigned destination = 0;
  friend bool operator<(const Flow& a, const Flow& b) {
    return a.source != b.source ? a.source < b.source : a.destination < b.destination;
  }
};

// The place of a spine cable.
struct Trunk {
  PortId plane{1};
  unsigned leaf = 0;
  unsigned spine = 0;
};

class Topology {
 public:
  Topology(unsigned hosts, unsigned planes);

  unsigned hosts() const { return hosts_; }
  unsigned planes() const { return planes_; }
  unsigned leaves() const { return leaves_; }  // on each plane
  unsigned spines() const { return spines_; }  // on each plane
  unsigned leaf_of(unsigned host) const { return host % leaves_; }
  unsigned leaf_port_of(unsigned host) const { return host / leaves_; }
  unsigned host_at(unsigned leaf, unsigned leaf_port) const { return leaf_port * leaves_ + leaf; }

  // Paths and EVs of the profile that all queue pairs share; neighbouring EVs differ in plane.
  unsigned paths() const { return planes_ * spines_; }
  Path path(EvIndex ev) const;
  core::EvProfile make_profile() const;

  const wire::UsidPlan& usid_plan() const { return usid_plan_; }
  wire::IpAddress carrier(const Flow& flow, const Path& path) const;

  unsigned links() const { return 2 * planes_ * (hosts_ + leaves_ * spines_); }
  LinkId host_to_leaf(unsigned host, PortId plane) const;
  LinkId leaf_to_host(unsigned host, PortId plane) const;
  LinkId leaf_to_spine(const Trunk& trunk) const;
  LinkId spine_to_leaf(const Trunk& trunk) const;

 private:
  unsigned trunk_index(const Trunk& trunk) const;

  unsigned hosts_;
  unsigned planes_;
  unsigned leaves_;
  unsigned spines_;
  wire::UsidPlan usid_plan_;
};

// Hosts are known by one address each, whatever the port.
wire::IpAddress host_address(unsigned host);
Address endpoint_address(const wire::IpAddress& address);

}  // namespace mrc::demo
