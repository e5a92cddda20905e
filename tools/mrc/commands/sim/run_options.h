// Everything `mrc sim` can be told, by flags and by files with the same keys.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/topology_options.h"
#include "sim/config.h"

namespace mrc::tool::simulator {

struct Outputs {
  bool json = false;
  std::string csv;     // one line per flow
  std::string series;  // over time
  std::string pcap;
  std::vector<std::string> pcap_links;
  std::uint32_t pcap_snap_bytes = 256;  // 0 = whole frames
  std::uint64_t pcap_packets = 1'000'000;
  std::string report;                  // HTML page
  std::string record;                  // for `mrc view`
  std::uint64_t record_hops = 40'000;  // of packets, followed one by one
  unsigned explain = 0;                // so many of the slowest flows
};

struct RunOptions {
  sim::SimConfig config;             // its topology and faults are set by resolve()
  std::vector<std::uint64_t> seeds;  // empty: that of `config` alone
  std::vector<sim::Transport> transports = {sim::Transport::kMrc};
  std::string topology_source;  // preset or file; empty: the defaults
  fabric::TopologyOptions topology;
  bool one_plane = false;
  std::vector<std::string> faults;
  std::vector<std::string> fault_files;
  Outputs outputs;
  std::string command;  // that describes the same run, without its outputs
};

enum class ValueKind : std::uint8_t { kFlag, kCount, kNumber, kShare, kTime, kBytes, kText };

// A value as written; the member that belongs to the kind of its setting is set.
struct Value {
  bool flag = true;
  std::uint64_t count = 0;  // kCount, kBytes
  double number = 0;        // kNumber, kShare
  sim::Time time = 0;
  std::string text;
};

// One thing to say. `name` is the key in files; the flag has - for _.
struct Setting {
  const char* name;
  ValueKind kind;
  const char* help;
  void (*apply)(RunOptions& options, const Value& value);
  bool repeats = false;
};
struct SettingGroup {
  const char* name;
  std::span<const Setting> settings;
};
std::span<const SettingGroup> setting_groups();
const Setting* find_setting(std::string_view name);  // null: there is none
std::string flag_of(std::string_view name);

// Throws InputError, without saying which setting is meant.
std::vector<std::uint64_t> parse_seeds(const std::string& text);  // "1-20", "1,4,7-9"
Value parse_value(const Setting& setting, const std::string& text);
void apply_text(const Setting& setting, const std::string& text, RunOptions& options);

// Whatever the name is a key of. Throws InputError.
void apply_by_name(std::string_view name, const std::string& text, RunOptions& options);

// Reads a TOML file of settings. Throws InputError with file and line.
void apply_file(const std::string& path, RunOptions& options);

// Topology keys are settings too, but know their member by pointer.
bool is_topology_key(std::string_view name);
void apply_topology_text(std::string_view name, const std::string& text, RunOptions& options);

// The fabric that is asked for. Throws InputError.
fabric::TopologySpec resolve_fabric(const RunOptions& options);

// Puts topology and faults into the configuration and refuses what contradicts itself. Throws
// InputError.
void resolve(RunOptions& options);

}  // namespace mrc::tool::simulator
