// One rank of `mrc perf allreduce` and its sisters, from the rendezvous to the last size, and what
// it shows: the columns of nccl-tests for people, JSON for programs.
#pragma once

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "collective/collectives.h"
#include "collective/communicator.h"
#include "commands/perf/collective_data.h"
#include "exit_code.h"
#include "mrc.h"

namespace mrc::tool::perf {

// How the paths of queue pairs do, of all of them together.
struct PathTotals {
  std::uint64_t good = 0;  // paths by state
  std::uint64_t skipped = 0;
  std::uint64_t bad = 0;
  std::uint64_t denied = 0;
  std::uint64_t packets_sent = 0;
  std::uint64_t retransmitted = 0;
};

PathTotals path_totals(std::span<mrc_qp* const> qps);

struct CollectiveRow {
  std::uint64_t bytes = 0;
  double seconds = 0;  // per round, mean of all ranks
  std::uint64_t rounds = 0;
  std::uint64_t wrong = 0;  // elements, of all ranks
  bool checked = false;
};

// What one rank has done so far.
struct CollectiveProgress {
  std::uint64_t rounds = 0;
  std::uint64_t checked_bytes = 0;
  std::uint64_t wrong = 0;
};

struct CollectiveReportOptions {
  Operation operation = Operation::kAllReduce;
  collective::Element element = collective::Element::kFloat;
  unsigned rank = 0;
  unsigned ranks = 1;
  std::uint32_t chunk_bytes = 0;
  unsigned slots = 0;
  std::string device;
  bool json = false;
  bool intervals = false;  // lines of JSON, the result is one as well
};

// Rank 0 shows the results; intervals come from every rank.
class CollectiveReport {
 public:
  explicit CollectiveReport(const CollectiveReportOptions& options);

  void begin();
  void add(const CollectiveRow& row);
  void interval(const CollectiveProgress& progress, std::uint64_t received_bytes,
                const PathTotals& paths) const;
  void end();
  std::uint64_t wrong() const { return wrong_; }

 private:
  bool shows() const { return options_.rank == 0; }

  CollectiveReportOptions options_;
  std::FILE* out_;
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
  double bus_sum_ = 0;
  std::uint64_t wrong_ = 0;
};

struct CollectiveOptions {
  Operation operation = Operation::kAllReduce;
  collective::CommunicatorOptions communicator;
  collective::Element element = collective::Element::kFloat;
  std::uint64_t min_bytes = 8;
  std::uint64_t max_bytes = 32 << 20;
  std::uint64_t factor = 2;
  std::uint64_t iterations = 20;
  std::uint64_t warm_up = 5;
  double seconds = 0;  // for each size; 0 = by iterations
  bool verify = true;
  bool verify_all = false;  // every round, not one for each size
  double report_every_s = 0;
  bool json = false;
};

// Empty when it can be carried out, else one line that says why not.
std::string why_not(const CollectiveOptions& options);

class CollectiveRun {
 public:
  explicit CollectiveRun(const CollectiveOptions& options);

  // Throws Failure, after telling the other ranks.
  ExitCode run();

 private:
  void measure(std::uint64_t bytes);
  // So many rounds one after the other; seconds for each.
  double timed_rounds(std::uint64_t rounds, std::size_t bytes);
  // One round with data of its own; seconds it took.
  double checked_round(std::size_t bytes);
  bool all_want_to_stop(std::int64_t deadline_ns);
  void operate(std::size_t bytes);
  std::span<std::byte> result(std::size_t bytes);
  void look();

  CollectiveOptions options_;
  collective::Communicator communicator_;
  collective::Collectives collectives_;
  collective::Memory memory_;
  std::optional<collective::Memory> target_;  // of an all-to-all
  CollectiveReport report_;
  std::uint64_t round_ = 0;
  CollectiveProgress progress_;
  bool interrupted_ = false;
  std::int64_t next_report_ns_ = 0;
};

}  // namespace mrc::tool::perf
