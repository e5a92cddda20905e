#include "fabric/topology_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "fabric/input_error.h"
#include "fabric/presets.h"
#include "fabric/topology_file.h"

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
  app.add_option("--preset", preset_, "Start from this fabric; `mrc fabric presets` lists them")
      ->group(kGroup);
  app.add_option("--topology", file_, "Start from the fabric in this TOML file")->group(kGroup);
  for (const auto& key : fabric::topology_count_keys())
    app.add_option(flag_name(key.name), options_.*key.member, key.help)->group(kGroup);
  for (const auto& key : fabric::topology_number_keys())
    app.add_option(flag_name(key.name), options_.*key.member, key.help)->group(kGroup);
}

fabric::TopologySpec TopologyFlags::spec() const {
  if (!preset_.empty() && !file_.empty())
    throw fabric::InputError("--preset and --topology exclude each other");
  fabric::TopologySpec base;
  if (!preset_.empty()) base = fabric::find_preset(preset_).spec;
  if (!file_.empty()) base = fabric::load_topology(file_);
  return fabric::resolve_topology(base, options_);
}

}  // namespace mrc::tool
