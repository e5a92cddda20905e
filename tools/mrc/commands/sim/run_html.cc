// One self-contained page about one or several runs.
#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <stdexcept>

#include "commands/sim/run.h"
#include "commands/sim/svg_plot.h"
#include "output_file.h"
#include "text.h"

namespace mrc::tool::simulator {
namespace {

constexpr std::size_t kLinePoints = 720;
constexpr std::size_t kHeatColumns = 160;

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --ink: #1f2937; --soft: #6b7280; --rule: #e5e7eb; --page: #fff }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e5e7eb; --soft: #9ca3af; --rule: #374151; --page: #111827 }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
       max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin: 2rem 0 .3rem }
table { border-collapse: collapse } td, th { padding: .2rem 1.2rem .2rem 0; text-align: right }
td:first-child, th:first-child { text-align: left } tr { border-bottom: 1px solid var(--rule) }
svg { width: 100%; height: auto } svg text { font-size: 11px; fill: var(--soft) }
polyline { fill: none; stroke-width: 1.6 } .grid { stroke: var(--rule) }
.mark { stroke: #dc2626; stroke-width: 1.5; stroke-dasharray: 4 3 }
.legend span { margin-right: 1rem } .legend i { display: inline-block; width: .8rem;
  height: .8rem; border-radius: 2px; margin-right: .35rem; vertical-align: -1px }
code { background: var(--rule); padding: 0 .3rem; border-radius: 3px } .soft { color: var(--soft) }
)";

std::string name_of(const Run& run) { return sim::transport_name(run.report.config.transport); }
double to_us(sim::Time time) { return static_cast<double>(time) / 1e6; }

std::vector<PlotMark> fault_marks(const sim::Report& report) {
  std::vector<PlotMark> marks;
  for (std::size_t i = 0; i < report.faults.size(); ++i)
    marks.push_back({to_us(report.fault_starts[i]), report.faults[i]});
  return marks;
}

std::string completion_cdf(const std::vector<Run>& runs) {
  LinePlot plot{"completion time, us", "share of flows, %", {}, {}};
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const std::vector<sim::FlowResult>& flows = runs[r].report.result.flows;
    std::vector<double> times;
    for (const sim::FlowResult& flow : flows)
      if (flow.sent >= 0 && !flow.failed) times.push_back(to_us(flow.sent - flow.posted));
    std::sort(times.begin(), times.end());
    PlotLine line{name_of(runs[r]), palette(r), {}};
    // Of all flows: the line of a run in which some failed ends below 100 %.
    const auto share = [&flows](std::size_t done) {
      return 100.0 * static_cast<double>(done) / static_cast<double>(flows.size());
    };
    // Few enough points, the last among them.
    const std::size_t step = std::max<std::size_t>(1, times.size() / kLinePoints);
    for (std::size_t i = 0; i < times.size(); i += step)
      line.points.push_back({times[i], share(i)});
    if (!times.empty()) line.points.push_back({times.back(), share(times.size())});
    plot.lines.push_back(std::move(line));
  }
  return draw(plot);
}

std::vector<PlotPoint> goodput_points(const sim::Series& series,
                                      const std::function<std::uint64_t(std::size_t)>& bytes) {
  std::vector<PlotPoint> points;
  const double bin_us = to_us(series.bin_ps());
  for (std::size_t bin = 0; bin < series.bins(); ++bin)
    points.push_back({(static_cast<double>(bin) + 0.5) * bin_us,
                      static_cast<double>(bytes(bin)) * 8 / (bin_us * 1e3)});
  return thinned(points, kLinePoints);
}

std::string goodput_over_time(const std::vector<Run>& runs) {
  LinePlot plot{"time, us", "goodput, Gb/s", {}, fault_marks(runs.front().report)};
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const sim::Series& series = runs[r].report.result.series;
    plot.lines.push_back({name_of(runs[r]), palette(r),
                          goodput_points(series, [&](std::size_t b) { return series.bytes(b); })});
  }
  return draw(plot);
}

std::string load_per_plane(const Run& run) {
  LinePlot plot{"time, us", "goodput, Gb/s", {}, fault_marks(run.report)};
  const sim::Series& series = run.report.result.series;
  for (unsigned plane = 0; plane < series.planes(); ++plane) {
    plot.lines.push_back(
        {"plane " + std::to_string(plane), palette(plane),
         goodput_points(series, [&](std::size_t bin) { return series.bytes(plane, bin); })});
  }
  return draw(plot);
}

std::string queue_heat_map(const Run& run) {
  const sim::SampleSeries& series = *run.samples;
  HeatMap map{"time, us", "bytes", 0, series.rows, {}, fault_marks(run.report)};
  const std::size_t group =
      std::max<std::size_t>(1, (series.samples.size() + kHeatColumns - 1) / kHeatColumns);
  for (std::size_t first = 0; first < series.samples.size(); first += group) {
    std::vector<double> column(series.rows.size());
    const std::size_t last = std::min(series.samples.size(), first + group);
    for (std::size_t i = first; i < last; ++i)
      for (std::size_t row = 0; row < column.size(); ++row)
        column[row] = std::max<double>(column[row], series.samples[i].row_bytes[row]);
    map.columns.push_back(std::move(column));
  }
  map.x_end = to_us(series.period) * static_cast<double>(map.columns.size() * group);
  return draw(map);
}

std::string windows_and_paths(const Run& run) {
  LinePlot windows{"time, us", "bytes per sending queue pair", {}, fault_marks(run.report)};
  LinePlot paths{"time, us", "paths held for bad", {}, fault_marks(run.report)};
  PlotLine window{"congestion window", palette(0), {}};
  PlotLine flight{"in flight", palette(1), {}};
  PlotLine bad{"bad", palette(4), {}};
  for (const sim::Sample& s : run.samples->samples) {
    const double x = to_us(s.at);
    const auto senders = static_cast<double>(std::max(1u, s.senders.connections));
    window.points.push_back({x, static_cast<double>(s.senders.window_bytes) / senders});
    flight.points.push_back({x, static_cast<double>(s.senders.in_flight_bytes) / senders});
    bad.points.push_back({x, static_cast<double>(s.senders.bad_evs)});
  }
  windows.lines = {std::move(window), std::move(flight)};
  paths.lines = {std::move(bad)};
  return "<h2>Congestion windows</h2>\n" + draw(windows) + "<h2>Path states</h2>\n" + draw(paths);
}

// One row per figure, one column per run.
class Figures {
 public:
  explicit Figures(const std::vector<Run>& runs) : runs_(runs) {
    html_ = "<table><tr><th></th>";
    for (const Run& run : runs)
      html_ += "<th>" + name_of(run) + "</th>";
    html_ += "</tr>\n";
  }
  void row(const char* label, const std::function<std::string(const Run&)>& cell) {
    html_ += fmt::format("<tr><td>{}</td>", label);
    for (const Run& run : runs_)
      html_ += "<td>" + cell(run) + "</td>";
    html_ += "</tr>\n";
  }
  void count(const char* label, const std::function<std::uint64_t(const Run&)>& value) {
    row(label, [&](const Run& run) { return grouped(value(run)); });
  }
  std::string html() const { return html_ + "</table>\n"; }

 private:
  const std::vector<Run>& runs_;
  std::string html_;
};

std::string figures(const std::vector<Run>& runs) {
  const auto us = [](double value) { return fmt::format("{:.2f} us", value); };
  Figures table(runs);
  table.row("flows completed", [](const Run& r) {
    return grouped(r.report.result.completed) + " of " + grouped(r.report.flows);
  });
  table.row("completion, mean", [&](const Run& r) { return us(r.report.fct_us.mean); });
  table.row("completion, 99 %", [&](const Run& r) { return us(r.report.fct_us.p99); });
  table.row("completion, last", [&](const Run& r) { return us(r.report.fct_us.max); });
  table.row("one flow alone", [&](const Run& r) { return us(r.report.ideal_us); });
  table.row("worst flow / alone",
            [](const Run& r) { return fmt::format("{:.3f}", r.report.ratio_max); });
  table.row("finish / lower bound",
            [](const Run& r) { return fmt::format("{:.3f}", r.report.ratio_bound); });
  table.row("goodput", [](const Run& r) { return bit_rate(r.report.goodput_gbps * 1e9); });
  if (runs.front().report.victim) {
    table.row("victim / alone", [](const Run& r) {
      return r.report.victim ? fmt::format("{:.3f}", r.report.victim->ratio) : "not finished";
    });
  }
  table.count("retransmitted", [](const Run& r) { return r.report.result.hosts.retransmits; });
  table.count("trimmed", [](const Run& r) { return r.report.result.network.trims; });
  table.count("marked", [](const Run& r) { return r.report.result.network.marks; });
  table.count("dropped", [](const Run& r) { return r.report.result.network.drops(); });
  table.count("pauses", [](const Run& r) { return r.report.result.network.pauses; });
  table.count("wrong bytes", [](const Run& r) { return r.report.result.bytes_wrong; });
  if (runs.front().report.has_down_fault) {
    table.row("last packet on a dead path",
              [&](const Run& r) { return us(std::max(0.0, r.report.result.recovery_us)); });
  }
  return table.html();
}

std::string head(const sim::Report& report) {
  const fabric::TopologySpec& t = report.config.topology;
  std::string html = fmt::format(
      "<h1>{} on {} hosts</h1>\n<p class=\"soft\">{} x {}, {} T0 and {} T1 per plane, seed "
      "{}</p>\n",
      escaped(report.config.workload.name), grouped(t.hosts), counted(t.planes, "plane", "planes"),
      bit_rate(static_cast<double>(t.host_link.bits_per_second)), t.t0, t.t1, report.config.seed);
  for (const std::string& fault : report.faults)
    html += "<p>Fault: <code>" + escaped(fault) + "</code></p>\n";
  return html;
}

std::string page(const std::vector<Run>& runs) {
  const sim::Report& first = runs.front().report;
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>mrc sim: " +
      escaped(first.config.workload.name) + "</title>\n<style>" + kStyle +
      "</style></head><body>\n";
  html += head(first) + figures(runs);
  html += "<h2>Completion times</h2>\n" + completion_cdf(runs);
  html += "<h2>Goodput over time</h2>\n" + goodput_over_time(runs);
  for (const Run& run : runs) {
    const std::string of = runs.size() > 1 ? ", " + name_of(run) : "";
    html += "<h2>Load per plane" + of + "</h2>\n" + load_per_plane(run);
    html += "<h2>Queues" + of + "</h2>\n" + queue_heat_map(run);
    if (run.report.config.transport == sim::Transport::kMrc) html += windows_and_paths(run);
  }
  return html + "</body></html>\n";
}

}  // namespace

void write_html(const std::string& path, const std::vector<Run>& runs) {
  write_file(path, [&](std::ostream& file) { file << page(runs); });
}

}  // namespace mrc::tool::simulator
