#include "fabric/topology_file.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "fabric/input_error.h"
#include "fabric/presets.h"
#include "fabric/topology_options.h"
#include "fabric/topology_table.h"

namespace mrc::fabric {
namespace {

// Where a key or value stands, as a prefix of an error.
std::string place(const std::string& origin, const toml::source_region& source) {
  return origin + ":" + std::to_string(source.begin.line) + ": ";
}

// Keys, names and the parser's words may hold anything; an error is one line.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return text;
}

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
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw InputError(place(origin, error.source()) + one_line(std::string(error.description())));
  }
  return read_topology_table(table, origin);
}

TopologySpec load_topology(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) throw InputError(path + ": cannot be read");
  return parse_topology(text.str(), path);
}

TopologySpec find_topology(const std::string& preset_or_file) {
  if (preset_or_file.empty()) return {};
  const bool is_file =
      preset_or_file.ends_with(".toml") || preset_or_file.find('/') != std::string::npos;
  return is_file ? load_topology(preset_or_file) : find_preset(preset_or_file).spec;
}

}  // namespace mrc::fabric
