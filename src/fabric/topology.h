// A multi-plane Clos fabric as a value: which switches and cables exist, how fast and how long they
// are. Everything is arithmetic on a few numbers, so a fabric of 131,072 NICs costs nothing to
// hold.
//
// Every host has one port per plane; planes are separate and equal. Host h hangs on T0 number
// h / hosts_per_t0 of each plane. With two tiers every T0 has a cable to every T1, or several. With
// three tiers T0 and T1 switches stand in pods, every T0 is joined to the T1s of its pod, and the
// T1s that stand at the same place in their pods share a group of T2s.
//
// Where there are several cables between a T0 and a T1, each is a way of its own: the uplinks of a
// T0 are counted through, those to its first T1 first (ADR 31).
//
// A cable is two links, one per direction. Links, hosts and switches are numbered densely from 0;
// switches within their plane.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"

namespace mrc::fabric {

using Picoseconds = std::int64_t;
inline constexpr Picoseconds kPicosecondsPerNs = 1'000;

// How long so many bytes take on the wire at that rate.
constexpr Picoseconds transmission_ps(std::uint64_t bytes, std::uint64_t bits_per_second) {
  return static_cast<Picoseconds>(bytes * 8'000'000'000'000 / bits_per_second);
}

enum class LinkId : std::uint32_t {};
inline constexpr LinkId kNoLink{0xFFFF'FFFF};
constexpr std::uint32_t index(LinkId link) { return static_cast<std::uint32_t>(link); }

enum class NodeKind : std::uint8_t { kHost, kT0, kT1, kT2 };
const char* node_kind_name(NodeKind kind);  // "host", "t0", ...

struct Node {
  NodeKind kind = NodeKind::kHost;
  std::uint8_t plane = 0;   // of a switch, or of the host's port
  std::uint32_t index = 0;  // T1s of all pods are counted through
  friend bool operator==(const Node&, const Node&) = default;
};

// Which cables share rate and delay.
enum class LinkTier : std::uint8_t { kHost, kT0T1, kT1T2 };
inline constexpr unsigned kLinkTiers = 3;

struct LinkClass {
  std::uint64_t bits_per_second = 400'000'000'000;
  Picoseconds delay_ps = 1'000'000;
  friend bool operator==(const LinkClass&, const LinkClass&) = default;
};

struct TopologySpec {
  unsigned planes = 1;
  unsigned hosts = 16;
  unsigned t0 = 4;      // per plane, over all pods
  unsigned t1 = 4;      // per plane, over all pods
  unsigned pods = 1;    // 1 without a third tier
  unsigned t2 = 0;      // per plane; 0 = two tiers
  unsigned cables = 1;  // between a T0 and a T1; more than one with two tiers only
  LinkClass host_link;
  LinkClass t0_t1_link;
  LinkClass t1_t2_link;
  friend bool operator==(const TopologySpec&, const TopologySpec&) = default;
};

struct Link {
  Node from;
  Node to;
  LinkTier tier = LinkTier::kHost;
  std::uint32_t cable = 0;  // which of those between the two
};

// One way across a plane. `up` is the uplink of a T0 that it takes, and with it the T1; it comes
// down through the cable of the same number. `t2` counts within the group of that T1; a path
// between hosts of one T0 uses neither, one within a pod no T2.
struct Path {
  std::uint8_t plane = 0;
  std::uint16_t up = 0;
  std::uint16_t t2 = 0;
  friend bool operator==(const Path&, const Path&) = default;
};

class Topology {
 public:
  // Throws InputError when such a fabric cannot be built.
  explicit Topology(const TopologySpec& spec);

  const TopologySpec& spec() const { return spec_; }
  unsigned planes() const { return spec_.planes; }
  unsigned hosts() const { return spec_.hosts; }
  bool three_tier() const { return spec_.t2 > 0; }
  unsigned hosts_per_t0() const { return hosts_per_t0_; }
  unsigned t0_per_pod() const { return t0_per_pod_; }
  unsigned t1_per_pod() const { return t1_per_pod_; }
  unsigned t2_per_group() const { return t2_per_group_; }  // uplinks of a T1; 0 with two tiers
  unsigned cables() const { return spec_.cables; }         // between a T0 and a T1
  unsigned uplinks_per_t0() const { return t1_per_pod_ * spec_.cables; }
  // Of an uplink of a T0: the T1 within the pod, and which of the cables to it.
  unsigned t1_of_uplink(unsigned up) const { return up / spec_.cables; }
  unsigned cable_of_uplink(unsigned up) const { return up % spec_.cables; }
  unsigned switches() const { return spec_.planes * (spec_.t0 + spec_.t1 + spec_.t2); }
  const LinkClass& link_class(LinkTier tier) const;

  unsigned t0_of(unsigned host) const { return host / hosts_per_t0_; }
  unsigned place_at_t0(unsigned host) const { return host % hosts_per_t0_; }
  unsigned pod_of_t0(unsigned t0) const { return t0 / t0_per_pod_; }

  // Links by name. `t1` and `t2` are numbers within the plane, `up` and `cable` as in Path and
  // Link.
  std::uint32_t link_count() const { return links_per_plane_ * spec_.planes; }
  LinkId host_up(unsigned plane, unsigned host) const { return link(plane, host); }
  LinkId host_down(unsigned plane, unsigned host) const { return link(plane, spec_.hosts + host); }
  LinkId t0_up(unsigned plane, unsigned t0, unsigned up) const {
    return link(plane, t0_up_ + t0 * uplinks_per_t0() + up);
  }
  LinkId t1_down(unsigned plane, unsigned t1, unsigned t0_in_pod, unsigned cable) const {
    return link(plane, t1_down_ + (t1 * t0_per_pod_ + t0_in_pod) * spec_.cables + cable);
  }
  LinkId t1_up(unsigned plane, unsigned t1, unsigned t2_in_group) const {
    return link(plane, t1_up_ + t1 * t2_per_group_ + t2_in_group);
  }
  LinkId t2_down(unsigned plane, unsigned t2, unsigned pod) const {
    return link(plane, t2_down_ + t2 * spec_.pods + pod);
  }

  Link describe(LinkId id) const;
  LinkId reverse(LinkId id) const;
  // The link from one node to another, kNoLink when there is no such cable.
  LinkId find(const Node& from, const Node& to, unsigned cable = 0) const;

  // Links a packet crosses between two hosts.
  unsigned hops(unsigned source, unsigned destination) const;
  unsigned longest_hops() const;
  // Different ways between hosts of different T0s (three tiers: of different pods), per plane.
  unsigned paths_per_plane() const;

 private:
  LinkId link(unsigned plane, std::uint32_t in_plane) const {
    return LinkId{plane * links_per_plane_ + in_plane};
  }
  void check() const;

  TopologySpec spec_;
  unsigned hosts_per_t0_ = 0;
  unsigned t0_per_pod_ = 0;
  unsigned t1_per_pod_ = 0;
  unsigned t2_per_group_ = 0;
  // First number of each kind of link within a plane.
  std::uint32_t t0_up_ = 0;
  std::uint32_t t1_down_ = 0;
  std::uint32_t t1_up_ = 0;
  std::uint32_t t2_down_ = 0;
  std::uint32_t links_per_plane_ = 0;
};

// Plane by plane, T0 before T1 before T2.
std::vector<Node> all_switches(const Topology& topology);

// "t0:3/plane:1"; hosts of one-plane fabrics are named the same way.
std::string node_name(const Node& node);
// "t0:3>t1:5/plane:1"; of several cables between the two "t0:3>t1:5/cable:2/plane:1".
std::string link_name(const Topology& topology, LinkId link);

}  // namespace mrc::fabric
