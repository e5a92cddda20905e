#include "commands/plan/build.h"

#include <fmt/core.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <ostream>
#include <utility>

#include "base/quantity.h"
#include "fabric/host_file.h"
#include "fabric/input_error.h"
#include "file_set.h"
#include "terminal.h"
#include "text.h"

namespace mrc::tool::plan {
namespace {

namespace fs = std::filesystem;

// A file of a host has a line for every other, so those of a large fabric are written on demand.
constexpr unsigned kMostUnasked = 256;

// From so much on it is told before it is written.
constexpr std::uint64_t kMuch = 100'000'000;

// The first and the one behind the last.
std::pair<unsigned, unsigned> wanted_hosts(const std::string& text, unsigned hosts) {
  if (text.empty()) return {0, hosts <= kMostUnasked ? hosts : 0};
  const std::size_t dash = text.find('-');
  const auto first = parse_number(text.substr(0, dash));
  const auto last = dash == std::string::npos ? first : parse_number(text.substr(dash + 1));
  if (!first || !last || *first > *last || *last >= hosts) {
    throw fabric::InputError(
        fmt::format("--hosts {}: write N or N-M, from 0 to {}", text, hosts - 1));
  }
  return {*first, *last + 1};
}

void write_topology(FileSet& files, const fabric::TopologySpec& spec) {
  files.write("fabric.toml", [&](std::ostream& file) {
    file << "# Made by mrc plan. Take it with --topology; delays are to be set to those of the "
            "site.\n"
         << fabric::topology_text(spec);
  });
}

// Hosts' files are what is large: each has a line for every other host.
void check_size(const FileSet& files, const BuildOptions& options, const fabric::Routing& routing,
                unsigned first, unsigned last) {
  if (first == last) return;
  const std::uint64_t each = host_file(routing, first, options.host_ports).size();
  const std::uint64_t bytes = each * (last - first);
  if (bytes < kMuch) return;
  fmt::print(stderr, "mrc plan: {} of {} each, {} in all, are to be written to {}\n",
             counted(last - first, "file of a host", "files of hosts"), byte_count(each),
             byte_count(bytes), options.folder);
  files.check_room(bytes);
}

std::string what_was_written(const fabric::PlanInput& input, const fabric::FabricPlan& plan,
                             const BuildOptions& options, const fabric::Topology& topology,
                             unsigned host_files) {
  const fabric::TopologySpec& spec = topology.spec();
  std::string text = fmt::format(
      "\n{} written: fabric.toml ({} T0 and {} T1 per plane, {} between each two), "
      "cables.csv ({}){}\n",
      options.folder, spec.t0, spec.t1, counted(spec.cables, "cable", "cables"),
      counted(topology.link_count() / 2, "cable", "cables"),
      host_files > 0 ? fmt::format(", {} of hosts", counted(host_files, "file", "files")) : "");
  if (spec.hosts > input.nics)
    text += fmt::format("  {} places for hosts: all T0s have as many\n", grouped(spec.hosts));
  if (std::uint64_t{spec.t1} * spec.planes > plan.switches_per_tier.at(1))
    text += fmt::format("  {} T1s per plane, not {}: so many share the uplinks of a T0 evenly\n",
                        spec.t1, plan.switches_per_tier.at(1) / plan.planes);
  if (host_files == 0) text += "  files of hosts: --hosts N-M\n";
  return text;
}

}  // namespace

std::string write_build(const fabric::PlanInput& input, const fabric::FabricPlan& plan,
                        const BuildOptions& options) {
  fabric::ExportOptions names;
  names.ports = options.switch_ports;
  fabric::check_export(names);
  names.ports.prefix = options.host_ports.prefix;
  fabric::check_export(names);
  const fabric::TopologySpec spec = fabric::buildable(input, plan);
  const fabric::Topology topology(spec);
  const fabric::Routing routing(topology);
  const auto [first, last] = wanted_hosts(options.hosts, spec.hosts);
  const LongWait wait("writing " + options.folder);
  FileSet files(options.folder);
  check_size(files, options, routing, first, last);
  write_topology(files, spec);
  files.write("cables.csv", [&](std::ostream& file) {
    file << fabric::kCableColumns;
    for (unsigned plane = 0; plane < spec.planes; ++plane)
      file << fabric::cable_lines(routing, plane, options.switch_ports, options.host_ports);
  });
  if (last > first) files.make_folder("hosts");
  for (unsigned host = first; host < last; ++host)
    files.write(fs::path("hosts") / fmt::format("host-{}.toml", host),
                [&](std::ostream& file) { file << host_file(routing, host, options.host_ports); });
  files.keep();
  return what_was_written(input, plan, options, topology, last - first);
}

}  // namespace mrc::tool::plan
