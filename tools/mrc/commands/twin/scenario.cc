#include "commands/twin/scenario.h"

#include <algorithm>
#include <cmath>

#include "commands/sim/run_options.h"
#include "controller/words.h"
#include "fabric/input_error.h"
#include "lab/host_config.h"
#include "lab/network.h"
#include "sim/mrc_host.h"

namespace mrc::tool::twin {
namespace {

using fabric::InputError;

constexpr unsigned kMaxHosts = 32;
constexpr std::uint64_t kMaxBps = 1'000'000'000;
constexpr std::uint64_t kMaxFlowBytes = std::uint64_t{1} << 30;
constexpr std::size_t kMaxTasks = 4'096;
constexpr std::uint64_t kProfile = 1;
// Queues of a few packets cannot hold what comes while a process waits for its turn.
constexpr std::uint32_t kLeastWindowBytes = 64 * 1024;

void check(const Scenario& scenario) {
  const sim::SimConfig& config = scenario.config;
  const auto require = [&](bool fine, const std::string& why) {
    if (!fine) throw InputError(scenario.path + ": " + why);
  };
  const fabric::TopologySpec& t = config.topology;
  require(t.t2 == 0 && t.hosts <= kMaxHosts,
          "a lab has two tiers and up to " + std::to_string(kMaxHosts) + " hosts");
  require(t.host_link.bits_per_second <= kMaxBps,
          "a port of a lab carries up to 1 Gb/s (gbps = 1); 0.1 is right for most machines");
  require(config.loss == 0 && config.trim_victim == fabric::TrimVictim::kArrival &&
              config.forwarding == fabric::ForwardingMode::kSrv6 && !config.mrc.seal.on,
          "labs know neither loss, trims, ecmp, structured nor sealed; fail = \"... loss 1%\" "
          "loses on a link");
  require(scenario.workload.tasks.size() <= kMaxTasks,
          "more than " + std::to_string(kMaxTasks) + " transfers");
  for (const sim::Task& task : scenario.workload.tasks) {
    require(task.bytes <= kMaxFlowBytes, "a transfer is longer than 1 GiB");
    // A host learns of what it received, and of nothing else.
    for (std::uint32_t i = 0; i < task.dependent_count; ++i) {
      const sim::TaskId later = scenario.workload.dependents[task.first_dependent + i];
      require(scenario.workload.tasks[later].source == task.destination,
              "in this workload hosts wait for what happens at others");
    }
  }
}

}  // namespace

Scenario read_scenario(const std::string& path) {
  simulator::RunOptions options;
  simulator::apply_file(path, options);
  simulator::resolve(options);
  Scenario scenario;
  scenario.path = path;
  scenario.config = options.config;
  scenario.config.transport = sim::Transport::kMrc;
  const fabric::Topology topology(scenario.config.topology);
  scenario.workload = sim::make_workload(scenario.config.workload, topology);
  check(scenario);
  // As a lab sizes its queues, see lab::NetworkOptions.
  scenario.config.queue_slack_ps = lab::NetworkOptions{}.host_latency_ps;
  core::NsccParameters& nscc = scenario.config.mrc.nscc;
  const auto queue_rtt_ns = static_cast<std::uint32_t>(
      (sim::longest_base_rtt(scenario.config, topology) + scenario.config.queue_slack_ps) / 1'000);
  if (nscc.base_rtt_ns == 0) nscc.base_rtt_ns = queue_rtt_ns;
  if (nscc.target_delay_ns == 0) nscc.target_delay_ns = queue_rtt_ns / 2;
  const double bdp = static_cast<double>(nscc.base_rtt_ns) * 1e-9 / 8 * topology.planes() *
                     static_cast<double>(scenario.config.topology.host_link.bits_per_second);
  if (nscc.max_cwnd == 0)
    nscc.max_cwnd = std::max(kLeastWindowBytes, static_cast<std::uint32_t>(1.5 * bdp));
  return scenario;
}

controller::CcSpec cc_profile_of(const Scenario& scenario) {
  const core::NsccParameters& nscc = scenario.config.mrc.nscc;
  controller::CcSpec spec;
  spec.id = kProfile;
  spec.trimming = controller::parse_trimming(scenario.config.trimming ? "on" : "off");
  if (scenario.config.mrc.algorithm == core::CcAlgorithm::kNone) return spec;
  spec.algorithm = controller::parse_algorithm("nscc");
  spec.config = {.disable_qa = nscc.disable_qa ? std::uint8_t{1} : std::uint8_t{0},
                 .adjust_bytes_threshold = nscc.adjust_bytes_threshold,
                 .adjust_period_threshold = nscc.adjust_period_threshold_ns,
                 .base_rtt = nscc.base_rtt_ns,
                 .eta = nscc.eta,
                 .fi = nscc.fi,
                 .fi_scale = nscc.fi_scale,
                 .gamma = nscc.gamma,
                 .max_md_jump = nscc.max_md_jump,
                 .max_cwnd = nscc.max_cwnd,
                 .qa_gate = nscc.qa_gate,
                 .qa_threshold = nscc.qa_threshold_ns,
                 .target_delay = nscc.target_delay_ns};
  return spec;
}

sim::SimConfig simulated(const Scenario& scenario, const LabTraits& traits) {
  sim::SimConfig config = scenario.config;
  config.path_mtu = traits.mtu;
  const fabric::Topology topology(config.topology);
  config.mrc.evs = std::min(lab::kMaxEvsPerPort, topology.paths_per_plane()) * topology.planes();
  // Two hosts take a packet up, on its way there and with the answer.
  config.host_delay_ps = std::llround(traits.in_hosts_us / 2 * 1e6);
  return config;
}

}  // namespace mrc::tool::twin
