#include "perf/collective_report.h"

#include <fmt/core.h>

#include "perf/watch.h"

namespace mrc::tool::perf {
namespace {

using nlohmann::ordered_json;

void print_line(const ordered_json& message) {
  const std::string line = message.dump() + '\n';
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

CollectiveReport::CollectiveReport(const CollectiveReportOptions& options)
    : options_(options), out_(options.json || options.intervals ? stderr : stdout) {}

void CollectiveReport::begin() {
  if (!shows()) return;
  fmt::print(out_, "# mrc perf {}: {} ranks, device {}, chunks of {} bytes, {} of them under way\n",
             name_of(options_.operation), options_.ranks, options_.device, options_.chunk_bytes,
             options_.slots);
  fmt::print(out_, "# {:>10} {:>12} {:>8} {:>12} {:>9} {:>9} {:>8}\n", "size", "count", "type",
             "time", "algbw", "busbw", "#wrong");
  fmt::print(out_, "# {:>10} {:>12} {:>8} {:>12} {:>9} {:>9} {:>8}\n", "(B)", "(elements)", "",
             "(us)", "(GB/s)", "(GB/s)", "");
  std::fflush(out_);
}

void CollectiveReport::add(const CollectiveRow& row) {
  const std::uint64_t count = row.bytes / collective::bytes_of(options_.element);
  const double algorithm = row.seconds > 0 ? static_cast<double>(row.bytes) / row.seconds / 1e9 : 0;
  const double bus = algorithm * bus_factor(options_.operation, options_.ranks);
  bus_sum_ += bus;
  wrong_ += row.wrong;
  rows_.push_back({{"size_bytes", row.bytes},
                   {"count", count},
                   {"rounds", row.rounds},
                   {"time_us", row.seconds * 1e6},
                   {"algbw_gbytes_per_second", algorithm},
                   {"busbw_gbytes_per_second", bus},
                   {"wrong", row.checked ? ordered_json(row.wrong) : ordered_json()}});
  if (!shows()) return;
  fmt::print(out_, "  {:>10} {:>12} {:>8} {:>12.2f} {:>9.4f} {:>9.4f} {:>8}\n", row.bytes, count,
             name_of(options_.element), row.seconds * 1e6, algorithm, bus,
             row.checked ? std::to_string(row.wrong) : "N/A");
  std::fflush(out_);
}

void CollectiveReport::interval(const CollectiveProgress& progress, std::uint64_t received_bytes,
                                const PathTotals& paths) const {
  print_line({{"interval", true},
              {"rank", options_.rank},
              {"clock_s", static_cast<double>(now_ns()) / 1e9},
              {"received_bytes", received_bytes},
              {"rounds", progress.rounds},
              {"checked_bytes", progress.checked_bytes},
              {"wrong", progress.wrong},
              {"paths",
               {{"good", paths.good},
                {"skipped", paths.skipped},
                {"bad", paths.bad},
                {"denied", paths.denied}}},
              {"packets_sent", paths.packets_sent},
              {"retransmitted", paths.retransmitted}});
}

void CollectiveReport::end() {
  if (!shows()) return;
  const double mean = rows_.empty() ? 0 : bus_sum_ / static_cast<double>(rows_.size());
  fmt::print(out_, "# wrong elements: {}   average bus bandwidth: {:.4f} GB/s\n", wrong_, mean);
  std::fflush(out_);
  if (out_ == stdout) return;
  const ordered_json document = {{"schema", "mrc.perf.collective/1"},
                                 {"version", MRC_VERSION},
                                 {"operation", name_of(options_.operation)},
                                 {"ranks", options_.ranks},
                                 {"device", options_.device},
                                 {"type", name_of(options_.element)},
                                 {"chunk_bytes", options_.chunk_bytes},
                                 {"slots", options_.slots},
                                 {"wrong", wrong_},
                                 {"average_busbw_gbytes_per_second", mean},
                                 {"results", rows_}};
  if (options_.intervals) {
    print_line(document);
  } else {
    fmt::print("{}\n", document.dump(2));
  }
}

}  // namespace mrc::tool::perf
