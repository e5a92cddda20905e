#include "commands/sim/run_options.h"

#include <algorithm>

#include "base/quantity.h"
#include "commands/sim/number_text.h"
#include "commands/sim/run_files.h"
#include "fabric/fault_plan.h"
#include "fabric/input_error.h"
#include "fabric/topology_file.h"

namespace mrc::tool::simulator {
namespace {

using fabric::InputError;

template <typename Number>
bool apply_topology_key(std::span<const fabric::TopologyKey<Number>> keys, std::string_view name,
                        const std::string& text, RunOptions& options) {
  for (const fabric::TopologyKey<Number>& key : keys) {
    if (name != key.name) continue;
    std::optional<Number> number = read_number<Number>(text);
    if constexpr (!std::is_integral_v<Number>)
      if (!number) number = parse_named(name, text);
    if (!number) {
      const std::string_view form = std::is_integral_v<Number> ? kCountForm : form_of_named(name);
      throw InputError("'" + text + "' is not " + std::string(form));
    }
    options.topology.*key.member = *number;
    return true;
  }
  return false;
}

}  // namespace

std::string flag_of(std::string_view name) {
  std::string flag = "--" + std::string(name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

namespace {

template <typename Number>
Number wanted(const std::optional<Number>& read, const std::string& text, std::string_view form) {
  if (!read) throw InputError("'" + text + "' is not " + std::string(form));
  return *read;
}

}  // namespace

Value parse_value(const Setting& setting, const std::string& text) {
  Value value;
  value.text = text;
  switch (setting.kind) {
    case ValueKind::kFlag:
      if (text != "true" && text != "false")
        throw InputError("'" + text + "' is not true or false");
      value.flag = text == "true";
      break;
    case ValueKind::kCount:
      // A seed may have all 64 bits, which is more than a quantity may.
      if (const auto plain = read_number<std::uint64_t>(text))
        value.count = *plain;
      else
        value.count = wanted(parse_count(text), text, kCountForm);
      break;
    case ValueKind::kNumber:
      if (const auto plain = read_number<double>(text))
        value.number = *plain;
      else
        value.number = wanted(parse_named(setting.name, text), text, form_of_named(setting.name));
      break;
    case ValueKind::kShare:
      value.number = wanted(parse_share(text), text, kShareForm);
      break;
    case ValueKind::kTime:
      value.time = wanted(parse_time(text), text, kTimeForm);
      break;
    case ValueKind::kBytes:
      value.count = wanted(parse_bytes(text), text, kBytesForm);
      break;
    case ValueKind::kText:
      if (text.empty()) throw InputError("must not be empty");
      break;
  }
  return value;
}

std::vector<std::uint64_t> parse_seeds(const std::string& text) {
  constexpr std::uint64_t kMaxSeeds = 10'000;
  const auto refuse = [&] {
    throw InputError("'" + text + "' is no list of at most " + std::to_string(kMaxSeeds) +
                     " seeds such as 1-20 or 1,4,7-9");
  };
  std::vector<std::uint64_t> seeds;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view part = std::string_view(text).substr(begin, comma - begin);
    const std::size_t dash = std::min(part.find('-'), part.size());
    const auto first = read_number<std::uint64_t>(part.substr(0, dash));
    const auto last =
        dash < part.size() ? read_number<std::uint64_t>(part.substr(dash + 1)) : first;
    if (!first || !last || *last < *first || *last - *first >= kMaxSeeds - seeds.size()) refuse();
    for (std::uint64_t seed = *first; seed <= *last; ++seed)
      seeds.push_back(seed);
    begin = comma + 1;
  }
  return seeds;
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

void apply_by_name(std::string_view name, const std::string& text, RunOptions& options) {
  if (is_topology_key(name)) return apply_topology_text(name, text, options);
  const Setting* setting = find_setting(name);
  if (setting == nullptr) throw InputError("unknown key");
  apply_text(*setting, text, options);
}

fabric::TopologySpec resolve_fabric(const RunOptions& options) {
  fabric::TopologySpec spec =
      fabric::resolve_topology(fabric::find_topology(options.topology_source), options.topology);
  if (options.one_plane) {
    for (fabric::LinkClass* link : {&spec.host_link, &spec.t0_t1_link, &spec.t1_t2_link})
      link->bits_per_second *= spec.planes;
    spec.planes = 1;
  }
  return spec;
}

void resolve(RunOptions& options) {
  const fabric::TopologySpec spec = resolve_fabric(options);
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
