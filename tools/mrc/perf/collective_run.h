// One rank of `mrc perf allreduce` and its sisters, from the rendezvous to the last size.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "collective/collectives.h"
#include "collective/communicator.h"
#include "exit_code.h"
#include "perf/collective_data.h"
#include "perf/collective_report.h"

namespace mrc::tool::perf {

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
