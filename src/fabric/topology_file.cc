#include "fabric/topology_file.h"

#include "base/one_line.h"
#include "fabric/input_error.h"
#include "fabric/presets.h"
#include "fabric/topology_options.h"
#include "fabric/topology_table.h"

namespace mrc::fabric {
namespace {

// Reads one key into the options; false when no option has this name.
bool read_key(std::string_view key, const toml::node& node, TopologyOptions& options) {
  for (const TopologyKey<unsigned>& known : topology_count_keys()) {
    if (key != known.name) continue;
    const std::optional<std::int64_t> value = node.value_exact<std::int64_t>();
    if (!value || *value < 0 || *value > 0x4000'0000)
      throw InputError(std::string(key) + " must be a whole number from 0 to 1073741824");
    options.*known.member = static_cast<unsigned>(*value);
    return true;
  }
  for (const TopologyKey<double>& known : topology_number_keys()) {
    if (key != known.name) continue;
    const bool is_number = node.is_integer() || node.is_floating_point();
    if (!is_number) throw InputError(std::string(key) + " must be a number");
    options.*known.member = node.value<double>();
    return true;
  }
  return false;
}

std::string known_keys() {
  std::string list = "preset";
  for (const TopologyKey<unsigned>& key : topology_count_keys())
    list += std::string(", ") + key.name;
  for (const TopologyKey<double>& key : topology_number_keys())
    list += std::string(", ") + key.name;
  return list;
}

}  // namespace

TopologySpec read_topology_table(const toml::table& table, const std::string& origin) {
  TopologySpec base;
  TopologyOptions options;
  for (const auto& [key, node] : table) {
    try {
      if (key == "preset") {
        const std::optional<std::string> name = node.value_exact<std::string>();
        if (!name) throw InputError("preset must be a name in quotes");
        base = find_preset(*name).spec;
      } else if (!read_key(key.str(), node, options)) {
        throw InputError("unknown key '" + std::string(key.str()) + "'; known are " + known_keys());
      }
    } catch (const InputError& error) {
      throw InputError(place(origin, key.source()) + one_line(error.what()));
    }
  }
  try {
    return resolve_topology(base, options);
  } catch (const InputError& error) {
    throw InputError(origin + ": " + error.what());
  }
}

TopologySpec parse_topology(std::string_view text, const std::string& origin) {
  return read_topology_table(parse_toml(text, origin), origin);
}

TopologySpec load_topology(const std::string& path) {
  return read_topology_table(load_toml(path), path);
}

TopologySpec find_topology(const std::string& preset_or_file) {
  if (preset_or_file.empty()) return {};
  const bool is_file =
      preset_or_file.ends_with(".toml") || preset_or_file.find('/') != std::string::npos;
  return is_file ? load_topology(preset_or_file) : find_preset(preset_or_file).spec;
}

}  // namespace mrc::fabric
