// How packets find their way: the uSID plan of a fabric, the static table of each switch, paths and
// entropy values, and the three ways of forwarding that MRC knows.
//
// A path is chosen by the sender and written into the packet as uSIDs in the order of the hops; a
// switch checks that the first is its own, drops it and looks the next one up. With structured EVs
// each tier reads its own bits of the entropy value on the way up and the destination on the way
// down. With ECMP it hashes addresses and entropy on the way up.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "core/ev_profile.h"
#include "fabric/topology.h"
#include "wire/srv6.h"

namespace mrc::fabric {

enum class ForwardingMode : std::uint8_t { kSrv6, kStructuredEv, kEcmp };

// The uSIDs of a path in visiting order, kNoUsid behind the end.
using UsidList = std::array<wire::Usid, wire::kMaxUsids>;

// One static route: packets whose next uSID is `usid` leave through `link`.
struct Route {
  wire::Usid usid{};
  LinkId link = kNoLink;
  Node next;
};

class Routing {
 public:
  // Throws InputError when the fabric has more devices than the plan has numbers.
  explicit Routing(const Topology& topology, const wire::UsidPlan& plan = {});

  const Topology& topology() const { return *topology_; }
  const wire::UsidPlan& plan() const { return plan_; }

  // Numbers of devices. A host-port uSID is local to its T0. Where there are several cables between
  // a T0 and a T1, each of the two has a uSID for every one of them, by which the other reaches it
  // through that cable, and answers to all.
  wire::Usid usid_of(const Node& node, unsigned cable = 0) const;
  unsigned usids_of(NodeKind kind) const;  // of one device
  bool owns(const Node& node, wire::Usid usid) const;
  wire::UsidBlock block_of(unsigned plane) const;

  // Paths and entropy values. The low bits of an EV hold the uplink of the T0 (the T1, where there
  // is one cable to each), the next ones the T2, the high half the plane counted from 1; the same
  // EV means the same way to every destination.
  std::uint32_t entropy_of(const Path& path) const;
  // False when no path has this entropy value.
  bool path_of(std::uint32_t entropy, Path& path) const;

  // Destination template: everything but the path is fixed by source and destination.
  UsidList usids(unsigned source, unsigned destination, const Path& path) const;
  wire::IpAddress carrier(unsigned source, unsigned destination, const Path& path) const;
  // The inverse: false when no host sends on such a carrier.
  bool read_carrier(const wire::IpAddress& carrier, unsigned& source_t0, unsigned& destination,
                    Path& path) const;

  // The links of a path from end to end; at most 6.
  struct LinkList {
    std::array<LinkId, 6> links{};
    unsigned count = 0;
  };
  LinkList links(unsigned source, unsigned destination, const Path& path) const;

  // Forwarding at a switch; kNoLink: the packet is dropped.
  // `active` is the first uSID of the list, `next` the one behind it.
  LinkId next_by_usid(const Node& at, wire::Usid active, wire::Usid next) const;
  LinkId next_by_structured_ev(const Node& at, unsigned destination, std::uint32_t entropy) const;
  LinkId next_by_hash(const Node& at, unsigned source, unsigned destination,
                      std::uint32_t entropy) const;

  // The whole static table of a switch, one /48 per neighbour.
  std::vector<Route> table(const Node& at) const;
  // The place in that table, and so the port of the switch, through which a link leaves.
  unsigned port_of(LinkId link) const;

 private:
  // The way down to a host, through that cable of a T1 to the T0; kNoLink where the way leads up
  // first.
  LinkId down_link(const Node& at, unsigned destination, unsigned cable) const;

  const Topology* topology_;
  wire::UsidPlan plan_;
  unsigned up_bits_ = 0;  // of an EV
  unsigned t2_bits_ = 0;
};

// Up to `evs` paths for the queue pairs of one host, the same number on every plane. Hosts at
// different places of a T0 get different samples, so that together they use every T1; where places
// are equal modulo sample_count(), the same sample from another T1 on, in whose order they send.
unsigned sample_count(const Topology& topology, unsigned evs);
core::EvProfile make_ev_profile(const Routing& routing, unsigned evs, unsigned place);
// Where switches hash, EVs name no path, and there may be more of them than paths: with 16 of each
// some 6 paths are not hit at all, with 64 EVs a quarter of one.
core::EvProfile make_hashed_profile(const Topology& topology, unsigned evs);

}  // namespace mrc::fabric
