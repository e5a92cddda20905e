// Topologies, quantities, parts to drain and fault plans as people write them. The first byte says
// which: 'T' a topology, a TOML file; 'Q' a quantity; 'D' a part to drain; anything else a plan,
// one fault a line, the last two for the default fabric. 'd' is a part and 'C' a plan for a fabric
// with several cables between two switches.
#include <vector>

#include "base/quantity.h"
#include "fabric/drain.h"
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

const fabric::Topology& default_fabric() {
  static const fabric::Topology kTopology{fabric::TopologySpec{}};
  return kTopology;
}

const fabric::Topology& fabric_of_bundles() {
  static const fabric::Topology kTopology{fabric::TopologySpec{.cables = 3}};
  return kTopology;
}

// A part is its name, however it was written, and what goes with it is in the fabric.
void check_drain(const std::string& text, const fabric::Topology& topology) {
  const fabric::DrainTarget part = fabric::parse_drain_target(text, topology);
  const auto links = fabric::links_of(part, topology);
  require(!links.empty());
  for (const fabric::LinkId link : links)
    require(index(link) < topology.link_count());
  const fabric::DrainTarget again = fabric::parse_drain_target(part.name, topology);
  require(again.name == part.name && fabric::links_of(again, topology) == links);
}

void check_plan(const std::string& text, const fabric::Topology& topology) {
  const auto plan = fabric::parse_fault_file(text, "plan", topology);
  for (const fabric::Fault& fault : plan) {
    require(!fault.links.empty() && fault.start_ps >= 0 && fault.duration_ps >= 0);
    for (const fabric::LinkId link : fault.links)
      require(index(link) < topology.link_count());
    // What a report prints can be read again and means the same.
    const fabric::Fault again = fabric::parse_fault(fault.text, topology);
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

void check_quantity(const std::string& text) {
  if (const auto bytes = mrc::parse_bytes(text)) require(*bytes <= std::uint64_t{1} << 60);
  if (const auto share = mrc::parse_share(text)) require(*share >= 0 && *share <= 1);
  const std::uint64_t most = 1'000'000'000'000'000'000;
  if (const auto rate = mrc::parse_rate(text)) require(*rate <= most);
  if (const auto count = mrc::parse_count(text)) require(*count <= most);
  const auto time = mrc::parse_time(text);
  if (time) require(*time >= 0 && static_cast<std::uint64_t>(*time) <= most);
  // With a unit of their own, a number alone is one of these, and all else as before.
  const double most_digits = 18'446'744'073'709'551'615.0;
  const auto seconds = mrc::parse_seconds(text);
  if (seconds) require(*seconds >= 0 && *seconds <= most_digits);
  require(seconds || !time);
  const auto gbps = mrc::parse_rate_in(text, 1e9);
  if (gbps) require(*gbps >= 0 && *gbps <= most_digits);
  require(gbps || !mrc::parse_rate(text));
  require(mrc::parse_named("uplink_gbps", text) == gbps);
  const auto delay = mrc::parse_named("delay_us", text);
  if (delay) require(*delay >= 0 && *delay <= most_digits);
  require(delay || !time);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text = mrc::fuzz::text_of(data + 1, size - 1);
  try {
    if (data[0] == 'T')
      check_topology(text);
    else if (data[0] == 'Q')
      check_quantity(text);
    else if (data[0] == 'D')
      check_drain(text, default_fabric());
    else if (data[0] == 'd')
      check_drain(text, fabric_of_bundles());
    else
      check_plan(text, data[0] == 'C' ? fabric_of_bundles() : default_fabric());
  } catch (const fabric::InputError& error) {
    mrc::fuzz::require_one_line(error.what());
  }
  return 0;
}
