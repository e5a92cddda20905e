// The whole demonstration: builds the cluster, runs it in virtual time, and reports.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "demo/demo_host.h"
#include "demo/fault_plan.h"
#include "demo/measurements.h"
#include "demo/options.h"
#include "demo/report.h"
#include "demo/topology.h"
#include "demo/transfer.h"
#include "demo/virtual_network.h"

namespace mrc::demo {

class Cluster {
 public:
  explicit Cluster(const Options& options);

  // Runs until all data has arrived and is acknowledged, something failed, or virtual time is up.
  // `progress` is called now and then with the share of bytes that has arrived.
  Report run(const std::function<void(double)>& progress);

 private:
  enum class StepResult : std::uint8_t { kGoing, kFinished, kNothingLeft, kTooLate };

  void connect_all();
  StepResult step();
  TimeNs next_wake(unsigned& host) const;
  void act(const FaultAction& action);
  bool all_done() const;
  bool any_failed() const;
  std::uint64_t bytes_moved() const;

  Report make_report(StepResult ending) const;
  void sum_hosts(Report& report) const;
  void verify(Report& report) const;
  void judge(Report& report, StepResult ending) const;
  void survey_paths(Report& report) const;

  Options options_;
  Topology topology_;
  TransferPlan transfer_;
  DurationNs ideal_ns_;
  FaultPlan faults_;
  core::EvProfile profile_;
  VirtualNetwork network_;
  Measurements measurements_;
  std::deque<DemoHost> hosts_;
  TimeNs now_ = 0;
};

}  // namespace mrc::demo
