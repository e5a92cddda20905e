// The simulator as a WebAssembly module: what JavaScript may call.
//
// One instance of the module is one run. It is set up from the settings of `mrc sim`, one to a line
// as name=value, by the code that reads the command line; advanced piece by piece; broken and
// healed between two pieces; finished. Its stream of lines (docs/view.md) goes to the import
// `line`, its result to the standard output. What is wrong with the input becomes an exception of
// JavaScript, see exception.cc: the run that was being set up is lost then, one under way goes on.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "commands/sim/run.h"
#include "commands/sim/run_options.h"
#include "exception.h"
#include "fabric/input_error.h"
#include "sim/report.h"
#include "sim/simulation.h"
#include "view/sim_source.h"

#define EXPORT(name) __attribute__((export_name(#name)))

namespace mrc::playground {
namespace {

using fabric::InputError;
using Clock = std::chrono::steady_clock;

// What was printed reaches JavaScript.
void hand_over() { std::fflush(stdout); }

constexpr unsigned kMaxHosts = 256;
constexpr unsigned kMaxPlanes = 8;
constexpr unsigned kMaxSwitches = 1'024;  // of all planes
// What a run of a page may be asked for: 16,384 connections take some 200 MB.
constexpr std::size_t kMaxTasks = 16'384;

extern "C" __attribute__((import_module("page"), import_name("line"))) void page_line(
    const char* text, std::size_t size);

struct Playground {
  tool::simulator::RunOptions options;
  std::unique_ptr<sim::Simulation> simulation;
  std::optional<view::SimSource> source;
  std::uint64_t packet_hops = 0;
  double setup_s = 0;
  double wall_s = 0;  // of the simulation itself, not of what is between two pieces
  std::string input;  // what JavaScript hands over
};

// A run has nobody but JavaScript to own it.
Playground& playground() {
  static Playground instance;
  return instance;
}

// What writes or reads a file, and what only steers such output, several runs or several
// transports: a page that took it would show a command that does something else.
constexpr std::array<std::string_view, 7> kOfFiles = {"csv",  "series",    "report", "record",
                                                      "pcap", "fail_file", "flows"};
constexpr std::array<std::string_view, 8> kWithoutEffect = {
    "json", "seeds", "explain", "record_hops", "pcap_link", "pcap_snap", "pcap_packets", "compare"};

void check_name(std::string_view name) {
  if (std::find(kOfFiles.begin(), kOfFiles.end(), name) != kOfFiles.end())
    throw InputError("a page neither reads nor writes files; leave it out");
  if (std::find(kWithoutEffect.begin(), kWithoutEffect.end(), name) != kWithoutEffect.end())
    throw InputError("does nothing in the playground; leave it out, or give it to `mrc sim`");
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void apply_settings(std::string_view text, tool::simulator::RunOptions& options) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) throw InputError("a setting is name=value");
    const std::string_view name = line.substr(0, equals);
    set_context(tool::simulator::flag_of(name));
    check_name(name);
    tool::simulator::apply_by_name(name, std::string(line.substr(equals + 1)), options);
    set_context({});
  }
}

void check_size(const fabric::TopologySpec& spec) {
  const auto check = [](const char* what, std::uint64_t is, std::uint64_t most) {
    if (is > most)
      throw InputError(
          fmt::format("the fabric has {} {}, and the playground takes up to {}; "
                      "`mrc sim` on a computer takes more",
                      is, what, most));
  };
  check("hosts", spec.hosts, kMaxHosts);
  check("planes", spec.planes, kMaxPlanes);
  check("switches", std::uint64_t{spec.planes} * (spec.t0 + spec.t1 + spec.t2), kMaxSwitches);
}

void check_tasks(const sim::Workload& workload) {
  if (workload.tasks.size() > kMaxTasks)
    throw InputError(
        fmt::format("the workload has {} transfers, and the playground takes up to "
                    "{}; choose fewer hosts, steps or connections",
                    workload.tasks.size(), kMaxTasks));
}

}  // namespace

// Room for `size` bytes of text, the argument of the next call that takes one.
extern "C" EXPORT(input) char* input(std::size_t size) {
  playground().input.assign(size, '\0');
  return playground().input.data();
}

// Sets up the run that the input describes; its header goes out.
extern "C" EXPORT(start) void start() {
  Playground& p = playground();
  const Clock::time_point begin = Clock::now();
  apply_settings(p.input, p.options);
  check_size(tool::simulator::resolve_fabric(p.options));
  tool::simulator::resolve(p.options);
  if (p.options.transports.size() != 1)
    throw InputError("--transport: one at a time; the page shows two side by side");
  p.options.config.transport = p.options.transports.front();
  check_tasks(
      sim::make_workload(p.options.config.workload, fabric::Topology(p.options.config.topology)));
  p.simulation = std::make_unique<sim::Simulation>(p.options.config);
  p.source.emplace(*p.simulation,
                   view::SimSourceOptions{.title = sim::transport_name(p.options.config.transport),
                                          .live = true,
                                          .acts = true,
                                          .period = p.options.config.bin_ps,
                                          .filmed_hops = 0},
                   [](const std::string& line) { page_line(line.data(), line.size()); });
  p.setup_s = seconds_since(begin);
}

// On to `until_ns`; returns 0 when nothing is left to do.
extern "C" EXPORT(advance) int advance(double until_ns) {
  Playground& p = playground();
  const Clock::time_point begin = Clock::now();
  const bool goes_on =
      p.simulation->advance(static_cast<sim::Time>(until_ns) * fabric::kPicosecondsPerNs);
  p.wall_s += seconds_since(begin);
  p.packet_hops = p.simulation->network().counters().packet_hops;
  return goes_on ? 1 : 0;
}

extern "C" EXPORT(packet_hops) double packet_hops() {
  return static_cast<double>(playground().packet_hops);
}

extern "C" EXPORT(running_s) double running_s() { return playground().wall_s; }

// The input is a fault without a time. Prints it as it stands in the plan; its number is returned.
extern "C" EXPORT(add_fault) int add_fault() {
  Playground& p = playground();
  p.simulation->add_fault(p.input);
  fmt::print("{}\n", p.simulation->faults().back().text);
  hand_over();
  return static_cast<int>(p.simulation->faults().size()) - 1;
}

// Ends it. Prints how it stands in the plan now.
extern "C" EXPORT(end_fault) void end_fault(int fault) {
  Playground& p = playground();
  p.simulation->end_fault(static_cast<std::uint32_t>(fault));
  fmt::print("{}\n", p.simulation->faults()[static_cast<std::size_t>(fault)].text);
  hand_over();
}

// The plan as it stands, a fault per line.
extern "C" EXPORT(print_faults) void print_faults() {
  for (const fabric::Fault& fault : playground().simulation->faults())
    fmt::print("{}\n", fault.text);
  hand_over();
}

// The next `moves` packet moves are told one by one.
extern "C" EXPORT(film) void film(double moves) {
  playground().source->film(static_cast<std::uint64_t>(moves));
}

// After the run: the last frame goes out, the result is printed as by `mrc sim --json`.
extern "C" EXPORT(finish) void finish() {
  Playground& p = playground();
  sim::SimResult result = p.simulation->finish();
  p.source->finish(result);
  tool::simulator::Run run;
  run.setup_s = p.setup_s;
  run.wall_s = p.wall_s;
  run.peak_rss_bytes = static_cast<std::uint64_t>(__builtin_wasm_memory_size(0)) << 16;
  run.workload = p.simulation->workload();
  run.report = sim::make_report(p.options.config, p.simulation->topology(), run.workload,
                                p.simulation->faults(), std::move(result));
  std::vector<tool::simulator::Run> runs;
  runs.push_back(std::move(run));
  tool::simulator::print_json(runs);
  hand_over();
}

}  // namespace mrc::playground
