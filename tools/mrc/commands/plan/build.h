// What `mrc plan --out` writes: a fabric to be cabled.
#pragma once

#include <string>

#include "fabric/build_plan.h"
#include "fabric/planner.h"

namespace mrc::tool::plan {

struct BuildOptions {
  std::string folder;
  std::string hosts;  // "3" or "0-15"; empty: all of a small fabric
  fabric::HostPortNames host_ports;
  fabric::PortNames switch_ports = fabric::default_port_names(fabric::ExportFormat::kLinux);
};

// fabric.toml, cables.csv and hosts/host-N.toml. Returns what it wrote, in words. Throws InputError
// for a plan that cannot be built, std::runtime_error with the reason when a file cannot be
// written.
std::string write_build(const fabric::PlanInput& input, const fabric::FabricPlan& plan,
                        const BuildOptions& options);

}  // namespace mrc::tool::plan
