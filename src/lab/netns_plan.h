// A lab as network namespaces, in words for `ip` and `tc`: which namespaces and cables there are,
// what they are called, which addresses, rates and tables they get. Text only; nothing is done
// here.
//
//   PREFIXhost-3       host 3: nic0, nic1, ... one per plane, and mgmt
//   PREFIXmgmt         joins the mgmt interfaces of all hosts, for what programs say over TCP
//   PREFIXp1-t0-2      with the kernel as switch: T0 2 of plane 1, with ports swp1, swp2, ...
//   PREFIXswitches     with our switches: the far ends of all nic interfaces, h3p1 and so on
#pragma once

#include <string>
#include <vector>

#include "fabric/routing.h"
#include "fabric/topology.h"
#include "wire/frame.h"

namespace mrc::lab {

enum class SwitchKind : std::uint8_t {
  kProcess,    // ours, hosts are processes in the namespace of whoever calls
  kNamespace,  // ours, hosts are namespaces
  kKernel,     // the kernel's SRv6, hosts and switches are namespaces
};

// One end of a cable.
struct CableEnd {
  std::string name_space;
  std::string port;
};

class NetnsPlan {
 public:
  // Throws InputError for fabrics that this cannot be done for.
  NetnsPlan(const fabric::Routing& routing, std::string prefix, SwitchKind kind);

  std::string host_space(unsigned host) const;
  std::string switch_space(const fabric::Node& node) const;
  static std::string host_port(unsigned plane);
  // The end of a cable that faces the hosts' side of it or, of a host's cable, the switch: the one
  // that is taken down when the cable is cut. Equal for both directions.
  CableEnd home_end(fabric::LinkId link) const;
  // Whether frames on `link` leave through home_end() or come in there.
  bool leaves_home(fabric::LinkId link) const;
  // The end at which frames enter `link`.
  CableEnd sending_end(fabric::LinkId link) const;

  // For `ip -batch`: all namespaces and cables.
  std::string creation() const;
  // For `ip -n <host_space> -batch`, and the same of PREFIXmgmt.
  std::string host_setup(unsigned host) const;
  std::string management_space() const { return prefix_ + "mgmt"; }
  std::string management_setup() const;
  // For `ip -n <switch_space> -batch`, where the switches are ours.
  std::string our_switches_setup() const;
  // For a shell in the namespace of a kernel switch: its table as exported.
  std::string switch_script(const fabric::Node& node) const;
  // The part of it that is about one port, for `ip -batch`: what a port loses when it goes down.
  std::string port_setup(const CableEnd& end) const;
  // For `tc -batch`: the rate of the interface through which frames enter `link`.
  std::string rate_setup(fabric::LinkId link, double share) const;

  // Of the switch's port at the other end of a host's cable.
  wire::MacAddress gateway_mac(unsigned plane, unsigned host) const;

 private:
  const fabric::Topology& topology() const { return routing_->topology(); }
  CableEnd end_at(const fabric::Node& node, fabric::LinkId leaving) const;
  fabric::LinkId home_link(fabric::LinkId link) const;
  std::string cable(fabric::LinkId link) const;

  const fabric::Routing* routing_;
  std::string prefix_;
  SwitchKind kind_;
};

// Where programs of a host are reached over TCP from other hosts.
std::string management_address(SwitchKind kind, unsigned host);
std::string mac_text(const wire::MacAddress& mac);

}  // namespace mrc::lab
