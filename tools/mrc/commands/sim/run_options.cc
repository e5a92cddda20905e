#include "commands/sim/run_options.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "fabric/fault_plan.h"
#include "fabric/input_error.h"
#include "fabric/quantity.h"
#include "fabric/toml_file.h"
#include "fabric/topology_file.h"
#include "sim/pcapng_capture.h"

namespace mrc::tool::simulator {
namespace {

using fabric::InputError;

template <typename Number>
bool parse_all(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit kByteUnits[] = {{"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0},
                               {"kB", 1e3},     {"MB", 1e6},        {"GB", 1e9},
                               {"k", 1e3},      {"M", 1e6},         {"G", 1e9},
                               {"B", 1}};

std::uint64_t parse_bytes(std::string_view text) {
  std::uint64_t plain = 0;
  if (parse_all(text, plain)) return plain;
  for (const Unit& unit : kByteUnits) {
    double number = 0;
    if (!text.ends_with(unit.name)) continue;
    if (!parse_all(text.substr(0, text.size() - unit.name.size()), number)) continue;
    if (number >= 0 && number * unit.factor < 1e15)
      return static_cast<std::uint64_t>(std::llround(number * unit.factor));
  }
  throw InputError("'" + std::string(text) + "' is no number of bytes");
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) throw InputError(path + ": cannot be read");
  return text.str();
}

template <typename Number>
bool apply_topology_key(std::span<const fabric::TopologyKey<Number>> keys, std::string_view name,
                        const std::string& text, RunOptions& options) {
  for (const fabric::TopologyKey<Number>& key : keys) {
    if (name != key.name) continue;
    Number number = 0;
    if (!parse_all(std::string_view(text), number))
      throw InputError("'" + text + "' is no " + (std::is_integral_v<Number> ? "whole " : "") +
                       "number");
    options.topology.*key.member = number;
    return true;
  }
  return false;
}

// The text of a TOML value, as it would stand behind a flag.
std::string text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return std::to_string(whole->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  if (const auto* number = node.as_floating_point()) {
    char buffer[64];
    const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), number->get());
    if (error == std::errc()) return {buffer, end};
  }
  throw InputError("a text, a number, true or false is expected");
}

void apply_node(std::string_view name, const toml::node& node, RunOptions& options) {
  if (is_topology_key(name)) return apply_topology_text(name, text_of(node), options);
  const Setting* setting = find_setting(name);
  if (setting == nullptr) throw InputError("unknown key");
  const toml::array* list = node.as_array();
  if (list == nullptr || !setting->repeats) return apply_text(*setting, text_of(node), options);
  for (const toml::node& element : *list)
    apply_text(*setting, text_of(element), options);
}

}  // namespace

std::string flag_of(std::string_view name) {
  std::string flag = "--" + std::string(name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

Value parse_value(const Setting& setting, const std::string& text) {
  Value value;
  value.text = text;
  const auto refuse = [&](const char* wanted) {
    throw InputError("'" + text + "' is no " + wanted);
  };
  switch (setting.kind) {
    case ValueKind::kFlag:
      if (text != "true" && text != "false") refuse("true or false");
      value.flag = text == "true";
      break;
    case ValueKind::kCount:
      if (!parse_all(std::string_view(text), value.count)) refuse("whole number");
      break;
    case ValueKind::kNumber:
      if (!parse_all(std::string_view(text), value.number)) refuse("number");
      break;
    case ValueKind::kTime: {
      const std::optional<sim::Time> time = fabric::parse_time(text);
      if (!time) refuse("time such as 10us or 2ms");
      value.time = *time;
      break;
    }
    case ValueKind::kBytes:
      value.count = parse_bytes(text);
      break;
    case ValueKind::kText:
      if (text.empty()) throw InputError("must not be empty");
      break;
  }
  return value;
}

void apply_text(const Setting& setting, const std::string& text, RunOptions& options) {
  setting.apply(options, parse_value(setting, text));
}

bool is_topology_key(std::string_view name) {
  const auto has = [&](auto keys) {
    return std::any_of(keys.begin(), keys.end(), [&](const auto& k) { return name == k.name; });
  };
  return has(fabric::topology_count_keys()) || has(fabric::topology_number_keys());
}

void apply_topology_text(std::string_view name, const std::string& text, RunOptions& options) {
  if (!apply_topology_key(fabric::topology_count_keys(), name, text, options))
    apply_topology_key(fabric::topology_number_keys(), name, text, options);
}

void apply_file(const std::string& path, RunOptions& options) {
  const toml::table table = fabric::load_toml(path);
  for (const auto& [key, node] : table) {
    try {
      apply_node(key.str(), node, options);
    } catch (const InputError& error) {
      throw InputError(fabric::place(path, key.source()) + std::string(key.str()) + ": " +
                       error.what());
    }
  }
}

namespace {

void check_writable(const std::string& path) {
  if (path.empty()) return;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw InputError(path + ": is a directory");
  if (std::filesystem::exists(path, error)
          ? access(path.c_str(), W_OK) == 0
          : access(parent.empty() ? "." : parent.c_str(), W_OK) == 0)
    return;
  throw InputError(path + ": cannot be written");
}

// Everything that can be wrong with them, before hours are spent on the run.
void check_outputs(const RunOptions& options, const fabric::Topology& topology) {
  const Outputs& outputs = options.outputs;
  for (const std::string* path : {&outputs.csv, &outputs.series, &outputs.report, &outputs.pcap})
    check_writable(*path);
  if (outputs.pcap.empty() != outputs.pcap_links.empty())
    throw InputError("--pcap and --pcap-link belong together");
  if (!outputs.pcap.empty() && options.config.mrc.seal.on)
    throw InputError("--pcap shows packets that are not sealed; leave out --sealed or --pcap");
  if (!outputs.pcap.empty() && options.transports.size() > 1)
    throw InputError("--pcap takes one transport at a time");
  for (const std::string& link : outputs.pcap_links)
    sim::parse_links(link, topology);
}

}  // namespace

void resolve(RunOptions& options) {
  fabric::TopologySpec spec =
      fabric::resolve_topology(fabric::find_topology(options.topology_source), options.topology);
  if (options.one_plane) {
    for (fabric::LinkClass* link : {&spec.host_link, &spec.t0_t1_link, &spec.t1_t2_link})
      link->bits_per_second *= spec.planes;
    spec.planes = 1;
  }
  options.config.topology = spec;
  options.config.workload.seed = options.config.seed;

  const fabric::Topology topology(spec);
  check_outputs(options, topology);
  options.config.faults.clear();
  for (const std::string& path : options.fault_files) {
    for (fabric::Fault& fault : fabric::parse_fault_file(read_text(path), path, topology))
      options.config.faults.push_back(std::move(fault.text));
  }
  for (const std::string& text : options.faults) {
    fabric::parse_fault(text, topology);
    options.config.faults.push_back(text);
  }
}

}  // namespace mrc::tool::simulator
