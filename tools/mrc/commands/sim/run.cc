#include "commands/sim/run.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

#include "fabric/input_error.h"
#include "os/interrupt.h"
#include "output_file.h"
#include "sim/pcapng_capture.h"
#include "sim/simulation.h"
#include "terminal.h"
#include "text.h"

namespace mrc::tool::simulator {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// getrusage() would count what the process was before it became this program.
std::uint64_t peak_rss_bytes() {
  std::ifstream file("/proc/self/status");
  std::string line;
  while (std::getline(file, line))
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) * 1024;
  return 0;
}

std::string progress_details(const sim::Progress& p, double seconds) {
  // Nobody knows how long it takes before something has been moved.
  const std::string left =
      p.share > 0 ? fmt::format(", {:.0f} s left", seconds * (1 - p.share) / p.share) : "";
  return fmt::format(
      "{:.1f} us simulated, {:.2f} M hops/s, {} MB{}", static_cast<double>(p.now) / 1e6,
      static_cast<double>(p.packet_hops) / seconds / 1e6, grouped(peak_rss_bytes() >> 20), left);
}

// Settles which links are captured before anything runs.
std::optional<sim::CaptureOptions> capture_options(const Outputs& outputs,
                                                   const fabric::Topology& topology) {
  if (outputs.pcap.empty()) return {};
  sim::CaptureOptions options;
  options.snap_bytes = outputs.pcap_snap_bytes;
  options.max_packets = outputs.pcap_packets;
  for (const std::string& text : outputs.pcap_links)
    for (const fabric::LinkId link : sim::parse_links(text, topology))
      options.links.push_back(link);
  std::sort(options.links.begin(), options.links.end());
  options.links.erase(std::unique(options.links.begin(), options.links.end()), options.links.end());
  return options;
}

}  // namespace

view::SimSourceOptions recording_options(const RunOptions& options, sim::Transport transport) {
  return {.title = fmt::format(
              "{} on {}, {}", options.config.workload.name,
              options.topology_source.empty() ? "a fabric of its own" : options.topology_source,
              sim::transport_name(transport)),
          .command = options.command,
          .period = options.config.bin_ps,
          .filmed_hops = options.outputs.record_hops};
}

Run run_once(const RunOptions& options, sim::Transport transport, const Terminal& terminal) {
  Run run;
  sim::SimConfig config = options.config;
  config.transport = transport;
  // Each part is a flow of its own, as with --qps.
  if (transport == sim::Transport::kSplit) config.workload.connections *= config.roce.split_paths;
  const Clock::time_point start = Clock::now();
  sim::Simulation simulation(config);
  std::optional<sim::Capture> capture;
  if (auto wanted = capture_options(options.outputs, simulation.topology())) {
    capture.emplace(config, simulation.routing(), std::move(*wanted));
    for (const fabric::LinkId link : capture->links())
      simulation.tap(link, *capture);
  }
  std::optional<sim::SampleRecorder> recorder;
  if (!options.outputs.series.empty() || !options.outputs.report.empty())
    recorder.emplace(simulation, config.bin_ps);
  std::optional<OutputFile> file;
  std::optional<view::SimSource> source;
  if (!options.outputs.record.empty()) {
    if (recorder) throw fabric::InputError("--record goes without --series and --report");
    file.emplace(options.outputs.record);
    source.emplace(simulation, recording_options(options, transport),
                   [&](const std::string& line) { file->stream() << line << '\n'; });
  }
  run.setup_s = seconds_since(start);
  sim::SimResult result;
  {
    Progress progress(terminal, sim::transport_name(config.transport));
    const Clock::time_point begin = Clock::now();
    result = simulation.run([&](const sim::Progress& p) {
      if (progress.due()) progress.update(p.share, progress_details(p, seconds_since(begin)));
      if (os::Interrupt::raised()) simulation.stop();
    });
    run.wall_s = seconds_since(begin);
  }
  run.peak_rss_bytes = peak_rss_bytes();
  if (recorder) run.samples = recorder->take();
  if (source) {
    source->finish(result);
    file->close();
  }
  if (capture) {
    run.captured = capture->packets();
    run.not_captured = capture->left_out();
    write_file(options.outputs.pcap, [&](std::ostream& out) { capture->write(out); });
  }
  run.workload = simulation.workload();
  run.report = sim::make_report(config, simulation.topology(), run.workload, simulation.faults(),
                                std::move(result));
  if (options.outputs.explain > 0 && !os::Interrupt::raised()) {
    Progress progress(terminal, "explaining");
    run.explanations =
        sim::explain_slowest(run.report, run.workload, options.outputs.explain,
                             [&](const sim::Progress& p) { progress.update(p.share); });
  }
  return run;
}

}  // namespace mrc::tool::simulator
