#include "commands/sim/run_files.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "fabric/input_error.h"
#include "fabric/toml_file.h"
#include "sim/pcapng_capture.h"

namespace mrc::tool::simulator {
namespace {

using fabric::InputError;

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
  const Setting* setting = find_setting(name);
  if (setting == nullptr && !is_topology_key(name)) throw InputError("unknown key");
  const toml::array* list = node.as_array();
  const bool repeats = setting != nullptr && setting->repeats && list != nullptr;
  if (!repeats) return apply_by_name(name, text_of(node), options);
  for (const toml::node& element : *list)
    apply_text(*setting, text_of(element), options);
}

void check_writable(const std::string& path) {
  if (path.empty()) return;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code error;
  const auto refuse = [&](int reason) {
    throw std::runtime_error(path + ": cannot be written: " + std::strerror(reason));
  };
  if (std::filesystem::is_directory(path, error)) refuse(EISDIR);
  if (std::filesystem::exists(path, error)
          ? access(path.c_str(), W_OK) == 0
          : access(parent.empty() ? "." : parent.c_str(), W_OK) == 0)
    return;
  refuse(errno);
}

}  // namespace

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) throw InputError(path + ": cannot be read");
  return text.str();
}

void check_outputs(const RunOptions& options, const fabric::Topology& topology) {
  const Outputs& outputs = options.outputs;
  for (const std::string* path :
       {&outputs.csv, &outputs.series, &outputs.report, &outputs.pcap, &outputs.record})
    check_writable(*path);
  const bool of_one_run = !outputs.csv.empty() || !outputs.series.empty() ||
                          !outputs.report.empty() || !outputs.pcap.empty() ||
                          !outputs.record.empty() || outputs.explain > 0;
  if (!options.seeds.empty() && of_one_run)
    throw InputError(
        "--csv, --series, --report, --pcap, --record and --explain take one --seed, not --seeds");
  if (outputs.pcap.empty() != outputs.pcap_links.empty())
    throw InputError("--pcap and --pcap-link belong together");
  if (!outputs.pcap.empty() && options.config.mrc.seal.on)
    throw InputError("--pcap shows packets that are not sealed; leave out --sealed or --pcap");
  if (!outputs.record.empty() && options.transports.size() > 1)
    throw InputError("--record takes one transport at a time");
  if (!outputs.pcap.empty() && options.transports.size() > 1)
    throw InputError("--pcap takes one transport at a time");
  for (const std::string& link : outputs.pcap_links)
    sim::parse_links(link, topology);
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

}  // namespace mrc::tool::simulator
