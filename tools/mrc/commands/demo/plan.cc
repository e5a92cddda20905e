#include "commands/demo/plan.h"

#include <fmt/core.h>

#include "lab/cluster.h"

namespace mrc::tool::demo {

fabric::TopologySpec topology_of(const Options& options, Transport transport) {
  const bool mrc = transport == Transport::kMrc;
  fabric::TopologySpec spec;
  spec.planes = mrc ? options.planes : 1;
  spec.hosts = options.hosts;
  spec.t0 = Options::kT0;
  spec.t1 = Options::kT1;
  const double port_mbps = mrc ? options.mbps : options.mbps * options.planes;
  return lab::scale_rates(spec, static_cast<std::uint64_t>(port_mbps * 1e6));
}

std::vector<PlannedFault> faults_of(const Options& options, Transport transport) {
  const bool mrc = transport == Transport::kMrc;
  const unsigned planes = mrc ? options.planes : 1;
  const auto plane = [&](unsigned wanted) { return wanted % planes; };
  // With one path the network still has what the other cables carry; its users have not.
  const double without_t1 = mrc ? 1 - 1.0 / (planes * Options::kT1) : 1;
  const double without_port = mrc ? 1 - 1.0 / planes : 1;
  const std::string cable = fmt::format("t0:0/t1:1/plane:{}", plane(0));
  const std::string t1 = fmt::format("t1:2/plane:{}", plane(1));
  const std::string port = fmt::format("host:{}/plane:{}", options.hosts - 1, plane(2));
  return {{.kind = "cable",
           .begins = "cable " + cable + " is cut",
           .ends = "cable " + cable + " is mended",
           .fault = cable + " down @0",
           .heals = cable,
           .share_left = without_t1},
          {.kind = "switch",
           .begins = "switch " + t1 + " reboots",
           .ends = "switch " + t1 + " is back",
           .fault =
               fmt::format("{} down @0 for {}ms", t1, static_cast<unsigned>(options.fault_s * 1e3)),
           .heals = "",
           .share_left = without_t1},
          {.kind = "port",
           .begins = "NIC port " + port + " is gone",
           .ends = "NIC port " + port + " is back",
           .fault = port + " down @0",
           .heals = port,
           .share_left = without_port}};
}

std::vector<unsigned> ring_of(unsigned hosts) {
  std::vector<unsigned> ring;
  const unsigned half = (hosts + 1) / Options::kT0;
  for (unsigned i = 0; i < half; ++i) {
    ring.push_back(i);
    if (half + i < hosts) ring.push_back(half + i);
  }
  return ring;
}

}  // namespace mrc::tool::demo
