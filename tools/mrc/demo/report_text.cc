#include <fmt/core.h>

#include <cstdio>
#include <string>

#include "demo/frame_story.h"
#include "demo/goodput_chart.h"
#include "demo/report.h"
#include "demo/timeline.h"
#include "demo/transfer.h"
#include "terminal.h"
#include "text.h"

namespace mrc::demo {
namespace {

using tool::counted;
using tool::grouped;
using tool::microseconds;
using tool::Terminal;

void print_heading(const Terminal& terminal, const std::string& text) {
  fmt::print("\n{}\n", terminal.bold(text));
}

void print_cluster(const Report& report, const Terminal& terminal) {
  const Options& options = report.options;
  fmt::print("{}\n", terminal.bold("OpenMRC: data on the move while the network breaks"));
  fmt::print("  {} hosts with {} of 100 Gb/s each, all in this process, in virtual time.\n",
             options.hosts, counted(options.planes, "port", "ports"));
  fmt::print(
      "  Every host writes {} MB to the others: {} RDMA writes with immediate, of up to {} KiB,\n",
      options.mbytes, grouped(report.messages_planned), kMessageBytes / 1024);
  fmt::print("  through {} queue pairs. Each sprays its packets over {} source-routed paths\n",
             report.flows, report.paths_per_flow);
  fmt::print("  ({} with {} T1 switches each).\n", counted(options.planes, "plane", "planes"),
             report.spines);
}

void print_frame(const Report& report, const Terminal& terminal) {
  const auto lines = tell_frame(report.sample_frame);
  if (lines.empty()) return;
  print_heading(terminal,
                fmt::format("The first of {} frames, {} bytes on the wire",
                            grouped(report.network.frames), grouped(report.sample_frame.size())));
  for (const HeaderLine& line : lines) {
    const std::string header = terminal.cyan(fmt::format("{:<8}", line.header));
    if (line.remark.empty()) {
      fmt::print("  {}  {}\n", header, line.content);
    } else {
      fmt::print("  {}  {:<46}{}\n", header, line.content, terminal.dim(line.remark));
    }
  }
}

void print_timeline(const Report& report, const std::vector<Moment>& moments,
                    const Terminal& terminal) {
  print_heading(terminal, "What happened");
  fmt::print("  {:>9}      the transfer starts\n", microseconds(0));
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const Moment& moment = moments[i];
    const std::string mark = fmt::format("^{:<2}", i + 1);
    const std::string what = moment.kind == MomentKind::kCut      ? terminal.red(moment.what)
                             : moment.kind == MomentKind::kRepair ? terminal.green(moment.what)
                                                                  : terminal.dim(moment.what);
    fmt::print("  {:>9}  {} {}\n", microseconds(moment.at), terminal.yellow(mark), what);
    for (const std::string& detail : moment.details)
      fmt::print("  {:>9}      {}\n", "", detail);
  }
  const bool complete = report.bytes_moved == report.bytes_planned;
  fmt::print("  {:>9}      {}\n", microseconds(report.finished_at),
             complete ? "the last byte is in place and acknowledged" : "the run ends unfinished");
}

void print_engines(const Report& report, const Terminal& terminal) {
  const core::QpCounters& totals = report.totals;
  const PathReport& paths = report.paths;
  print_heading(terminal, "What the engines did");
  fmt::print("  data      {} packets sent, {} of them again ({})\n", grouped(totals.data_sent),
             grouped(totals.retransmitted),
             tool::percent(static_cast<double>(totals.retransmitted),
                           static_cast<double>(totals.data_sent)));
  fmt::print("  losses    found by path order {}, by time {}, by time-out {}; false alarms {}\n",
             grouped(totals.lost_by_path_order), grouped(totals.lost_by_time),
             grouped(totals.lost_by_timeout), grouped(totals.spurious));
  fmt::print("  queues    {} packets marked by switches, {} trimmed instead of dropped\n",
             grouped(report.network.marked), grouped(report.network.trimmed));
  fmt::print("  answers   {} SACKs, {} NACKs, {} ACKs; {} probes sent\n",
             grouped(totals.sacks_sent), grouped(totals.nacks_sent), grouped(totals.acks_sent),
             grouped(totals.probes_sent));
  fmt::print("  paths     given up {}, revived {}\n",
             counted(report.events.paths_given_up, "time", "times"),
             counted(report.events.paths_revived, "time", "times"));
  fmt::print("            now {} good, {} to be skipped once, {} assumed bad, {} denied\n",
             grouped(paths.good), grouped(paths.skip), grouped(paths.assumed_bad),
             grouped(paths.denied));
  fmt::print("            in truth {} dead; {} of those assumed bad would work\n",
             grouped(paths.dead), grouped(paths.bad_but_working));
}

void print_verdict(const Report& report, const Terminal& terminal, double wall_seconds) {
  print_heading(terminal, "Verdict");
  const double goodput = report.goodput_bits_per_second();
  fmt::print("  {} MB moved in {}: {}, {} of line rate\n",
             fmt::format("{:.1f}", static_cast<double>(report.bytes_moved) / 1e6),
             microseconds(report.finished_at), tool::bit_rate(goodput),
             tool::percent(goodput, static_cast<double>(report.line_rate_bits_per_second())));
  fmt::print("  {} bytes compared, {} wrong\n", grouped(report.bytes_verified),
             grouped(report.wrong_bytes + report.early_wrong_bytes));
  fmt::print("  {} of {} completions; {} immediates, {} out of order\n",
             grouped(report.completions), grouped(report.messages_planned),
             grouped(report.immediates), grouped(report.immediates_out_of_order));
  const bool passed = report.verdict == Verdict::kPassed;
  const std::string word = passed ? terminal.green("PASSED") : terminal.red("FAILED");
  const std::string why = passed ? "" : ": " + report.failure;
  fmt::print(
      "  {}{}  {}\n", word, why,
      terminal.dim(fmt::format("(seed {}: the same seed gives the same run; {:.1f} s of real "
                               "time)",
                               report.options.seed, wall_seconds)));
}

}  // namespace

void print_text(const Report& report, const Terminal& terminal, double wall_seconds) {
  const std::vector<Moment> moments = tell_timeline(report);
  print_cluster(report, terminal);
  print_frame(report, terminal);
  print_timeline(report, moments, terminal);
  print_heading(terminal, "Goodput of all hosts together, and each plane's share of it");
  print_goodput_chart(report, moments, terminal);
  print_engines(report, terminal);
  print_verdict(report, terminal, wall_seconds);
}

}  // namespace mrc::demo
