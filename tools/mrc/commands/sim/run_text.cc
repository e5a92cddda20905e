#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "commands/sim/run.h"
#include "terminal.h"
#include "text.h"

namespace mrc::tool::simulator {
namespace {

constexpr int kLabelWidth = 26;
constexpr int kColumnWidth = 22;
constexpr int kPartWidth = 40;

std::string us(double value) { return fmt::format("{:.2f} us", value); }

class Table {
 public:
  Table(const std::vector<Run>& runs, const Terminal& terminal) : runs_(runs), out_(terminal) {}

  void row(const char* label, const std::function<std::string(const Run&)>& cell) const {
    fmt::print(out_.stream(), "  {:<{}}", label, kLabelWidth);
    for (const Run& run : runs_)
      fmt::print(out_.stream(), "{:>{}}", cell(run), kColumnWidth);
    fmt::print(out_.stream(), "\n");
  }
  void count(const char* label, const std::function<std::uint64_t(const Run&)>& value) const {
    row(label, [&](const Run& run) { return grouped(value(run)); });
  }

 private:
  const std::vector<Run>& runs_;
  const Terminal& out_;
};

void print_head(const sim::Report& r, const Terminal& out) {
  const fabric::TopologySpec& t = r.config.topology;
  fmt::print(out.stream(), "{}  {} on {} hosts, {} x {}, {} T0 x {} T1, seed {}\n",
             out.bold("mrc sim"), r.config.workload.name, grouped(t.hosts),
             counted(t.planes, "plane", "planes"),
             bit_rate(static_cast<double>(t.host_link.bits_per_second)), t.t0, t.t1, r.config.seed);
  for (const std::string& fault : r.faults)
    fmt::print(out.stream(), "  {} {}\n", out.yellow("fault"), fault);
}

void print_times(const Table& table, const sim::Report& first) {
  table.row("", [](const Run& r) { return sim::transport_name(r.report.config.transport); });
  table.row("flows completed", [](const Run& r) {
    return fmt::format("{} of {}", grouped(r.report.result.completed), grouped(r.report.flows));
  });
  table.row("completion, mean", [](const Run& r) { return us(r.report.fct_us.mean); });
  table.row("completion, p99", [](const Run& r) { return us(r.report.fct_us.p99); });
  table.row("completion, last", [](const Run& r) { return us(r.report.fct_us.max); });
  table.row("one flow alone", [](const Run& r) { return us(r.report.ideal_us); });
  table.row("worst flow / alone",
            [](const Run& r) { return fmt::format("{:.3f}", r.report.ratio_max); });
  table.row("lower bound", [](const Run& r) { return us(r.report.bound_us); });
  table.row("finish / bound",
            [](const Run& r) { return fmt::format("{:.3f}", r.report.ratio_bound); });
  table.row("goodput", [](const Run& r) { return bit_rate(r.report.goodput_gbps * 1e9); });
  if (first.collective) {
    table.row("bus bandwidth", [](const Run& r) {
      return r.report.collective ? bit_rate(r.report.collective->bus_gbps * 1e9) : "not finished";
    });
  }
  if (first.fairness) {
    table.row("shares while all send", [](const Run& r) {
      if (!r.report.fairness) return std::string("not measured");
      const std::vector<double>& share = r.report.fairness->share;
      return fmt::format("{:.1f} to {:.1f} %", 100 * *std::min_element(share.begin(), share.end()),
                         100 * *std::max_element(share.begin(), share.end()));
    });
    table.row("Jain's index; worst tenth", [](const Run& r) {
      const auto& f = r.report.fairness;
      return f ? fmt::format("{:.4f}; {:.4f}", f->jain, f->jain_worst) : "not measured";
    });
  }
  for (std::size_t i = 0; i < first.slowdown.size(); ++i) {
    const std::uint64_t limit = first.slowdown[i].up_to_bytes;
    const std::string label =
        limit > 0 ? fmt::format("slowdown to {} kB", limit / 1'000) : "slowdown beyond";
    table.row(label.c_str(), [&](const Run& r) {
      for (const sim::SlowdownClass& c : r.report.slowdown)
        if (c.up_to_bytes == limit) return fmt::format("{:.2f}, p99 {:.2f}", c.mean, c.p99);
      return std::string("-");
    });
  }
  if (first.victim) {
    const bool through = first.config.workload.name == "parking-lot";
    table.row(through ? "through flow / alone" : "victim / alone", [](const Run& r) {
      return r.report.victim ? fmt::format("{:.3f}", r.report.victim->ratio) : "not finished";
    });
  }
  if (!first.result.step_us.empty()) {
    table.row("step, mean",
              [](const Run& r) { return us(sim::distribution(r.report.result.step_us).mean); });
    table.row("step, longest",
              [](const Run& r) { return us(sim::distribution(r.report.result.step_us).max); });
  }
}

void print_counts(const Table& table, const sim::Report& first) {
  table.count("retransmitted", [](const Run& r) { return r.report.result.hosts.retransmits; });
  table.count("timeouts", [](const Run& r) { return r.report.result.hosts.timeouts; });
  table.count("trimmed", [](const Run& r) { return r.report.result.network.trims; });
  table.count("marked", [](const Run& r) { return r.report.result.network.marks; });
  table.count("dropped", [](const Run& r) { return r.report.result.network.drops(); });
  table.count("wrong bytes", [](const Run& r) { return r.report.result.bytes_wrong; });
  if (!first.has_down_fault) return;
  table.row("last packet on dead path",
            [](const Run& r) { return us(std::max(0.0, r.report.result.recovery_us)); });
  table.row("goodput dip", [](const Run& r) {
    const sim::Dip& dip = r.report.result.dip;
    return dip.valid ? fmt::format("{:.0f} % for {:.0f} us", 100 * dip.depth, dip.length_us)
                     : "not seen";
  });
}

std::string lost_copies(const sim::Explanation& e) {
  std::string text;
  for (std::size_t i = 0; i < sim::kTimeParts; ++i) {
    if (e.lost[i] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", grouped(e.lost[i]),
                        name_of(static_cast<sim::TimePart>(i)));
  }
  return text.empty() ? text : " (" + text + ")";
}

void print_explanation(const Run& run, const sim::Explanation& e, const Terminal& out) {
  const sim::Task& task = run.workload.tasks[e.task];
  fmt::print(out.stream(), "{}\n",
             out.bold(fmt::format("{}: host {} to host {}, {} bytes, {:.2f} us",
                                  sim::transport_name(run.report.config.transport), task.source,
                                  task.destination, grouped(task.bytes), e.us)));
  for (std::size_t i = 0; i < sim::kTimeParts; ++i) {
    if (e.part_us[i] <= 0) continue;
    fmt::print(out.stream(), "  {:<{}}{:>12.2f} us{:>7.1f} %\n",
               describe(static_cast<sim::TimePart>(i)), kPartWidth, e.part_us[i],
               100 * e.part_us[i] / e.us);
  }
  fmt::print(out.stream(), "  {} packets, {} sent again{}\n", grouped(e.packets), grouped(e.copies),
             lost_copies(e));
}

}  // namespace

void print_text(const std::vector<Run>& runs, const Terminal& terminal) {
  const sim::Report& first = runs.front().report;
  print_head(first, terminal);
  const Table table(runs, terminal);
  print_times(table, first);
  print_counts(table, first);
  for (const Run& run : runs)
    for (const sim::Explanation& explanation : run.explanations)
      print_explanation(run, explanation, terminal);
  for (const Run& run : runs) {
    const sim::SimResult& r = run.report.result;
    fmt::print(terminal.stream(), "{}\n",
               terminal.dim(fmt::format(
                   "{}: {} packet-hops in {:.2f} s, {:.2f} M/s, {} MB, trace {:016x}",
                   sim::transport_name(run.report.config.transport), grouped(r.network.packet_hops),
                   run.wall_s, static_cast<double>(r.network.packet_hops) / run.wall_s / 1e6,
                   grouped(run.peak_rss_bytes >> 20), r.trace_hash)));
  }
}

}  // namespace mrc::tool::simulator
