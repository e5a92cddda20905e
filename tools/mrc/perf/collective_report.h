// Shows what collectives measured: the columns of nccl-tests for people, JSON for programs.
#pragma once

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "perf/collective_data.h"
#include "perf/path_totals.h"

namespace mrc::tool::perf {

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

}  // namespace mrc::tool::perf
