// A training job and a loop of all-reduces in a lab, while the lab breaks.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "commands/demo/goodput.h"
#include "commands/demo/options.h"
#include "commands/demo/parts.h"
#include "commands/demo/plan.h"
#include "commands/demo/show.h"
#include "launch/lab_process.h"
#include "launch/lab_status.h"
#include "launch/rank_group.h"

namespace mrc::tool::demo {

struct FaultResult {
  PlannedFault planned;
  double start_s = 0;  // into the drill
  FaultEffect effect;
};

struct DrillResult {
  Transport transport = Transport::kMrc;
  std::vector<FaultResult> faults;
  std::vector<std::string> losses;  // bits of each step, then of the network
  double first_loss = 0;
  double last_loss = 0;
  std::uint64_t moved_bytes = 0;  // received by the ranks of the all-reduce
  std::uint64_t checked_bytes = 0;
  std::uint64_t wrong = 0;  // elements
  std::uint64_t rounds = 0;
  std::uint64_t retransmitted = 0;
  double seconds = 0;
  // Jobs that ended before their time, with the reason of each.
  std::vector<std::string> interruptions;
};

class Drill {
 public:
  // Starts the lab, and its page at `place`.
  Drill(const Options& options, Transport transport, Show& show, PagePlace& place);
  ~Drill();
  Drill(const Drill&) = delete;
  Drill& operator=(const Drill&) = delete;

  // The losses of a training run without any fault. Throws Failure when it does not end well.
  std::vector<std::string> undisturbed_losses();
  // Throws Failure when the lab goes away, or when somebody presses Ctrl-C.
  DrillResult run();

 private:
  struct RankState;
  struct Running;

  std::vector<std::string> command(const std::vector<std::string>& words) const;
  std::unique_ptr<RankGroup> start_training(unsigned pace_ms) const;
  std::unique_ptr<RankGroup> start_all_reduces() const;
  void take_training_line(const std::string& line);
  void take_interval(unsigned rank, const std::string& line);
  void take_all_reduce_result(const nlohmann::json& message);
  void look(RankGroup* training, RankGroup* all_reduces);
  void look_until(double end_s, Running& running);
  void break_and_mend(Running& running);
  void finish(Running& running);
  void ask(const std::vector<std::string>& words);
  void draw();
  double now_s() const;

  const Options& options_;
  Transport transport_;
  Show& show_;
  LabProcess lab_;
  std::unique_ptr<Page> page_;
  std::vector<unsigned> ring_;
  double start_s_ = 0;  // of the clock
  Goodput goodput_;
  std::vector<RankState> ranks_;
  LabStatus last_status_;
  double last_status_s_ = 0;
  Snapshot snapshot_;
  DrillResult result_;
};

}  // namespace mrc::tool::demo
