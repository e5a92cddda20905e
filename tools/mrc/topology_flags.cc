#include "topology_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "fabric/topology_file.h"
#include "quantity_option.h"

namespace mrc::tool {
namespace {

std::string flag_name(const char* key) {
  std::string name = std::string("--") + key;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

}  // namespace

void TopologyFlags::declare(CLI::App& app) {
  static constexpr const char* kGroup = "Topology";
  app.add_option("--topology", source_,
                 "Start from this preset (`mrc fabric presets` lists them) or TOML file")
      ->group(kGroup);
  for (const auto& key : fabric::topology_count_keys())
    app.add_option(flag_name(key.name), options_.*key.member, key.help)->group(kGroup);
  for (const auto& key : fabric::topology_number_keys())
    app.add_option(flag_name(key.name), options_.*key.member, key.help)
        ->transform(as_named(key.name))
        ->group(kGroup);
}

fabric::TopologySpec TopologyFlags::spec() const {
  return fabric::resolve_topology(fabric::find_topology(source_), options_);
}

fabric::TopologySpec TopologyFlags::spec(const fabric::TopologySpec& unless_named) const {
  return source_.empty() ? fabric::resolve_topology(unless_named, options_) : spec();
}

}  // namespace mrc::tool
