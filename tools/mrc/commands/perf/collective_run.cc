#include "commands/perf/collective_run.h"

#include <fmt/core.h>

#include <algorithm>

#include "collective/device.h"
#include "failure.h"
#include "openmrc_counters.h"
#include "os/clock.h"
#include "os/interrupt.h"

namespace mrc::tool::perf {
namespace {

using collective::Links;
using nlohmann::ordered_json;
using os::monotonic_now;

constexpr double kNsPerSecond = 1e9;
constexpr std::uint64_t kMaxBufferBytes = std::uint64_t{1} << 30;

// Segments of equal length, as the C programs that people compare with have them; an all-reduce
// takes any number of elements.
std::size_t usable_bytes(const CollectiveOptions& options, std::uint64_t bytes) {
  const std::size_t each = collective::bytes_of(options.element);
  const bool any = options.operation == Operation::kAllReduce;
  const std::size_t step = any ? each : each * options.communicator.place.ranks;
  return std::max<std::size_t>(bytes / step * step, step);
}

collective::CommunicatorOptions with_links(const CollectiveOptions& options) {
  collective::CommunicatorOptions result = options.communicator;
  result.links = options.operation == Operation::kAllToAll ? Links::kMesh : Links::kRing;
  return result;
}

CollectiveReportOptions report_options(const CollectiveOptions& options,
                                       const collective::Communicator& communicator) {
  return {.operation = options.operation,
          .element = options.element,
          .rank = communicator.rank(),
          .ranks = communicator.ranks(),
          .chunk_bytes = communicator.shape().chunk_bytes,
          .slots = communicator.shape().slots,
          .device = communicator.device().name(),
          .json = options.json,
          .intervals = options.report_every_s > 0};
}

std::int64_t in_ns(double seconds) { return static_cast<std::int64_t>(seconds * kNsPerSecond); }

void print_line(const ordered_json& message) {
  const std::string line = message.dump() + '\n';
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

std::string why_not(const CollectiveOptions& options) {
  const auto& shape = options.communicator.shape;
  if (options.min_bytes > options.max_bytes)
    return fmt::format("--minbytes {} is above --maxbytes {}", options.min_bytes,
                       options.max_bytes);
  if (options.max_bytes > kMaxBufferBytes)
    return fmt::format("--maxbytes {}: at most {}", options.max_bytes, kMaxBufferBytes);
  if (options.factor < 2) return "--stepfactor must be at least 2";
  if (options.iterations == 0 && options.seconds == 0) return "--iters must be at least 1";
  if (shape.chunk_bytes < 64 || shape.chunk_bytes % 8 != 0 || shape.chunk_bytes > 16 << 20)
    return fmt::format("--chunk {}: a multiple of 8 from 64 to 16M", shape.chunk_bytes);
  if (shape.slots < 2 || shape.slots > 64)
    return fmt::format("--slots {}: from 2 to 64", shape.slots);
  return {};
}

CollectiveRun::CollectiveRun(const CollectiveOptions& options)
    : options_(options),
      communicator_(with_links(options)),
      collectives_(communicator_),
      memory_(communicator_.device(), usable_bytes(options, options.max_bytes)),
      report_(report_options(options, communicator_)) {
  if (options.operation == Operation::kAllToAll)
    target_.emplace(communicator_.device(), usable_bytes(options, options.max_bytes));
  communicator_.on_look([this] { look(); });
}

ExitCode CollectiveRun::run() {
  try {
    collectives_.barrier();
    report_.begin();
    std::uint64_t before = 0;
    for (std::uint64_t bytes = options_.min_bytes; bytes <= options_.max_bytes && !interrupted_;
         bytes *= options_.factor) {
      const std::uint64_t usable = usable_bytes(options_, bytes);
      if (usable != before) measure(usable);  // small sizes become the same one
      before = usable;
    }
    communicator_.finish();
  } catch (const Failure& failure) {
    communicator_.tell_failure(failure.what());
    throw;
  }
  report_.end();
  if (report_.wrong() > 0) return ExitCode::kWrongData;
  return interrupted_ ? ExitCode::kInterrupted : ExitCode::kOk;
}

void CollectiveRun::measure(std::uint64_t bytes) {
  CollectiveRow row{.bytes = bytes, .checked = options_.verify};
  double seconds = 0;
  std::fill(memory_.bytes().begin(), memory_.bytes().end(), std::byte{0});
  timed_rounds(options_.warm_up, bytes);
  const std::uint64_t wrong_before = progress_.wrong;
  if (options_.seconds > 0 || options_.verify_all) {
    const std::int64_t deadline =
        options_.seconds > 0 ? monotonic_now() + in_ns(options_.seconds) : INT64_MAX;
    while (!all_want_to_stop(deadline) &&
           (options_.seconds > 0 || row.rounds < options_.iterations)) {
      seconds += checked_round(bytes);
      ++row.rounds;
    }
    seconds = row.rounds > 0 ? seconds / static_cast<double>(row.rounds) : 0;
  } else {
    row.rounds = options_.iterations;
    seconds = timed_rounds(options_.iterations, bytes);
    if (options_.verify) checked_round(bytes);
  }
  row.seconds = collectives_.sum(seconds) / communicator_.ranks();
  row.wrong = static_cast<std::uint64_t>(
      collectives_.sum(static_cast<std::int64_t>(progress_.wrong - wrong_before)));
  report_.add(row);
}

double CollectiveRun::timed_rounds(std::uint64_t rounds, std::size_t bytes) {
  if (rounds == 0) return 0;
  collectives_.barrier();
  const std::int64_t start = monotonic_now();
  for (std::uint64_t i = 0; i < rounds; ++i) {
    operate(bytes);
    ++progress_.rounds;
  }
  return static_cast<double>(monotonic_now() - start) / kNsPerSecond / static_cast<double>(rounds);
}

double CollectiveRun::checked_round(std::size_t bytes) {
  const Round round{.operation = options_.operation,
                    .element = options_.element,
                    .rank = communicator_.rank(),
                    .ranks = communicator_.ranks(),
                    .number = ++round_};
  fill(round, memory_.bytes().first(bytes));
  collectives_.barrier();
  const std::int64_t start = monotonic_now();
  operate(bytes);
  const std::int64_t end = monotonic_now();
  ++progress_.rounds;
  if (options_.verify) {
    progress_.wrong += count_wrong(round, result(bytes));
    progress_.checked_bytes += bytes;
  }
  return static_cast<double>(end - start) / kNsPerSecond;
}

// Rank 0 watches the clock, everybody its signals; all come to the same answer.
bool CollectiveRun::all_want_to_stop(std::int64_t deadline_ns) {
  constexpr std::int64_t kLate = 1;
  constexpr std::int64_t kInterrupted = std::int64_t{1} << 32;
  const bool late = communicator_.rank() == 0 && monotonic_now() >= deadline_ns;
  const std::int64_t all =
      collectives_.sum((late ? kLate : 0) + (os::Interrupt::raised() ? kInterrupted : 0));
  if (all >= kInterrupted) {
    interrupted_ = true;
    os::Interrupt::clear();
  }
  return all > 0;
}

void CollectiveRun::operate(std::size_t bytes) {
  switch (options_.operation) {
    case Operation::kAllReduce:
      return collectives_.all_reduce(memory_, options_.element, bytes);
    case Operation::kReduceScatter:
      return collectives_.reduce_scatter(memory_, options_.element, bytes);
    case Operation::kAllGather:
      return collectives_.all_gather(memory_, options_.element, bytes);
    case Operation::kAllToAll:
      return collectives_.all_to_all(memory_, *target_, options_.element, bytes);
  }
}

std::span<std::byte> CollectiveRun::result(std::size_t bytes) {
  return (target_ ? target_->bytes() : memory_.bytes()).first(bytes);
}

void CollectiveRun::look() {
  // Rounds by the clock end together at the next round; others end here.
  if (os::Interrupt::raised() && options_.seconds == 0 && !options_.verify_all)
    throw Failure("interrupted", FailureKind::kInterrupted);
  if (options_.report_every_s == 0 || monotonic_now() < next_report_ns_) return;
  next_report_ns_ = monotonic_now() + in_ns(options_.report_every_s);
  report_.interval(progress_, communicator_.bytes_received(),
                   path_totals(communicator_.queue_pairs()));
}

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
              {"clock_s", static_cast<double>(monotonic_now()) / 1e9},
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

PathTotals path_totals(std::span<mrc_qp* const> qps) {
  PathTotals totals;
  for (mrc_qp* qp : qps) {
    openmrc_qp_counters counters{};
    counters.size = sizeof counters;
    collective::expect_ok("reading the counters of a queue pair",
                          openmrc_query_qp_counters(qp, &counters));
    totals.packets_sent += counters.packets_sent;
    totals.retransmitted += counters.retransmitted;
    totals.good += counters.paths_good;
    totals.skipped += counters.paths_skipped;
    totals.bad += counters.paths_assumed_bad;
    totals.denied += counters.paths_denied;
  }
  return totals;
}

}  // namespace mrc::tool::perf
