#include "sim/run.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <chrono>

#include "sim/simulation.h"
#include "text.h"

namespace mrc::tool::simulator {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::uint64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

std::string progress_details(const sim::Progress& p, double seconds) {
  const double left = p.share > 0 ? seconds * (1 - p.share) / p.share : 0;
  return fmt::format("{:.1f} us simulated, {:.2f} M hops/s, {} MB, {:.0f} s left",
                     static_cast<double>(p.now) / 1e6,
                     static_cast<double>(p.packet_hops) / seconds / 1e6,
                     grouped(peak_rss_bytes() >> 20), left);
}

}  // namespace

Run run_once(const sim::SimConfig& config, const Terminal& terminal) {
  Run run;
  const Clock::time_point start = Clock::now();
  sim::Simulation simulation(config);
  run.setup_s = seconds_since(start);
  sim::SimResult result;
  {
    Progress progress(terminal, sim::transport_name(config.transport));
    const Clock::time_point begin = Clock::now();
    result = simulation.run([&](const sim::Progress& p) {
      if (progress.due()) progress.update(p.share, progress_details(p, seconds_since(begin)));
    });
    run.wall_s = seconds_since(begin);
  }
  run.peak_rss_bytes = peak_rss_bytes();
  run.report = sim::make_report(config, simulation.topology(), simulation.workload(),
                                simulation.faults(), std::move(result));
  return run;
}

}  // namespace mrc::tool::simulator
