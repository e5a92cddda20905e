// Topologies and fault plans as people write them. The first byte says which: 'T' a topology, a
// TOML file; anything else a plan, one fault a line, for the default fabric.
#include <vector>

#include "fabric/fault_plan.h"
#include "fabric/input_error.h"
#include "fabric/topology_file.h"
#include "fuzz/text_support.h"

using mrc::fuzz::require;
namespace fabric = mrc::fabric;

namespace {

void check_topology(const std::string& text) {
  const fabric::TopologySpec spec = fabric::parse_topology(text, "fabric.toml");
  const fabric::Topology topology(spec);
  require(topology.planes() >= 1 && topology.hosts() >= 1);
  require(topology.link_count() >= topology.hosts());
}

void check_plan(const std::string& text) {
  static const fabric::Topology kTopology{fabric::TopologySpec{}};
  const auto plan = fabric::parse_fault_file(text, "plan", kTopology);
  for (const fabric::Fault& fault : plan) {
    require(!fault.links.empty() && fault.start_ps >= 0 && fault.duration_ps >= 0);
    for (const fabric::LinkId link : fault.links)
      require(index(link) < kTopology.link_count());
    // What a report prints can be read again and means the same.
    const fabric::Fault again = fabric::parse_fault(fault.text, kTopology);
    require(again.kind == fault.kind && again.links == fault.links);
    require(again.start_ps == fault.start_ps && again.duration_ps == fault.duration_ps);
  }
  constexpr fabric::Picoseconds kEnd = 10'000;  // 10 ns: flaps may be as short as 1 ps
  fabric::Picoseconds last = 0;
  for (const fabric::FaultAction& action : fabric::timeline(plan, kEnd)) {
    require(action.time_ps >= last && action.time_ps <= kEnd && action.fault < plan.size());
    last = action.time_ps;
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text = mrc::fuzz::text_of(data + 1, size - 1);
  try {
    if (data[0] == 'T')
      check_topology(text);
    else
      check_plan(text);
  } catch (const fabric::InputError& error) {
    mrc::fuzz::require_one_line(error.what());
  }
  return 0;
}
