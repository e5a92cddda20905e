// Takes the place of what reads and writes files in `mrc sim` (run_files.cc, topology_file.cc,
// workload_file.cc, flow_sizes_file.cc): a page has none.
#include "commands/sim/run_files.h"
#include "fabric/input_error.h"
#include "fabric/presets.h"
#include "fabric/topology_file.h"
#include "sim/flow_sizes.h"
#include "sim/workload_makers.h"

namespace mrc {
namespace {

using fabric::InputError;

[[noreturn]] void refuse(const std::string& path) {
  throw InputError(path + ": a page neither reads nor writes files");
}

}  // namespace

fabric::TopologySpec fabric::find_topology(const std::string& preset) {
  return preset.empty() ? TopologySpec{} : find_preset(preset).spec;
}

sim::Workload sim::make_flows(const WorkloadSpec& spec, const fabric::Topology&) {
  refuse(spec.file);
}

std::vector<sim::FlowSizes::Point> sim::read_flow_sizes(const std::string& path) { refuse(path); }

std::string tool::simulator::read_text(const std::string& path) { refuse(path); }

void tool::simulator::check_outputs(const RunOptions& options, const fabric::Topology&) {
  const Outputs& outputs = options.outputs;
  for (const std::string* path : {&outputs.csv, &outputs.series, &outputs.report, &outputs.pcap})
    if (!path->empty()) refuse(*path);
  if (!outputs.pcap_links.empty() || outputs.explain > 0)
    throw InputError("--explain and --pcap-link need the command line");
}

}  // namespace mrc
