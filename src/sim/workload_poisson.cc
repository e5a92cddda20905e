// A load: flows that come at random times, between random hosts, of random lengths.

#include <cmath>
#include <string>

#include "base/prng.h"
#include "fabric/input_error.h"
#include "sim/flow_sizes.h"
#include "sim/workload_makers.h"

namespace mrc::sim {
namespace {

using fabric::InputError;
using fabric::Topology;

// Uniform from 0 to below 1.
double draw(Prng& prng) { return static_cast<double>(prng.next64() >> 11) * 0x1p-53; }

}  // namespace

// `load` is the share of the rate of all hosts' ports that the payload of all flows asks for.
Workload make_poisson(const WorkloadSpec& spec, const Topology& topology) {
  if (!(spec.load > 0 && spec.load <= 2))
    throw InputError("workload: the load must be above 0 and at most 2");
  const FlowSizes sizes =
      spec.sizes.empty() ? FlowSizes::fixed(spec.bytes) : FlowSizes::named(spec.sizes);
  const std::vector<std::uint32_t> hosts = participants(spec, topology);
  const auto count = static_cast<std::uint32_t>(hosts.size());
  const double host_bps =
      static_cast<double>(topology.spec().host_link.bits_per_second) * topology.planes();
  const double gap_ps = sizes.mean() * 8e12 / (spec.load * host_bps * count);
  WorkloadBuilder builder("poisson");
  builder.report_by_size();
  Prng prng(spec.seed ^ 0x706F'6973);
  const auto end = static_cast<double>(spec.arrivals_ps);
  for (double at = -std::log1p(-draw(prng)) * gap_ps; at < end;
       at += -std::log1p(-draw(prng)) * gap_ps) {
    const std::uint32_t source = prng.below(count);
    const std::uint32_t destination = (source + 1 + prng.below(count - 1)) % count;
    const std::uint64_t bytes = std::max<std::uint64_t>(sizes.at(draw(prng)), spec.connections);
    const TaskRange parts =
        add_transfer(builder, spec.connections, hosts[source], hosts[destination], bytes);
    for (unsigned p = 0; p < parts.count; ++p)
      builder.task(parts.first + p).delay = static_cast<Time>(at);
  }
  Workload workload = builder.build();
  if (workload.tasks.empty())
    throw InputError("workload: no flow comes within " +
                     std::to_string(spec.arrivals_ps / 1'000'000) + " us at this load");
  return workload;
}

}  // namespace mrc::sim
