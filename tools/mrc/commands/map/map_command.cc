// mrc map: which cable or switch is broken, found by probes over exact SRv6 paths.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "command.h"
#include "commands/map/agents.h"
#include "commands/map/lab_fabric.h"
#include "commands/map/report.h"
#include "commands/map/results.h"
#include "controller/prober.h"
#include "controller/session.h"
#include "device_facts.h"
#include "fabric/input_error.h"
#include "fabric/survey.h"
#include "instance_lock.h"
#include "lab/directory.h"
#include "os/interrupt.h"
#include "quantity_option.h"
#include "terminal.h"
#include "text.h"
#include "topology_flags.h"

namespace mrc::tool {
namespace {

using fabric::HostResults;
using fabric::InputError;

constexpr double kMaxRate = 1e6;
constexpr unsigned kMaxCount = 10'000'000;

// Nothing could be found out. The number is that of wrong usage, which is the usual reason.
constexpr ExitCode kCouldNotRun = ExitCode::kUsage;

void tell(const fabric::News& news) {
  for (const fabric::Finding& finding : news.faults)
    fmt::print("{} {}\n", wall_time(), map::finding_text(finding));
  for (const std::string& name : news.healed)
    fmt::print("{} {} is healthy again\n", wall_time(), name);
  std::fflush(stdout);
}

std::string probing_line(const map::Agents& agents) {
  return "probing from " + counted(agents.count(), "host", "hosts");
}

class MapCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  void declare_probing(CLI::App& app);
  ExitCode merge() const;
  ExitCode probe_here() const;
  ExitCode ask_hosts() const;
  ExitCode watch(map::Agents& agents) const;
  void start_agents(map::Agents& agents) const;
  std::vector<std::string> agent_words(const fabric::TopologySpec& spec, unsigned host) const;
  fabric::TopologySpec described_fabric() const;
  ExitCode show(const fabric::Survey& survey) const;

  CLI::App* app_ = nullptr;
  TopologyFlags topology_;
  std::string device_;
  std::string lab_;
  std::string lab_base_ = lab::Directory::default_base();
  std::vector<unsigned> from_;
  unsigned host_ = 0;
  unsigned count_ = 500;
  controller::ProbeSettings probing_;
  bool all_ = false;
  bool raw_ = false;
  bool json_ = false;
  bool watch_ = false;
  double every_s_ = 1;
  double window_s_ = 10;
  std::vector<std::string> merge_;
};

CLI::App* MapCommand::declare(CLI::App& program) {
  app_ = program.add_subcommand("map", "Say which cables and switches are broken, by probes");
  app_->add_option("--lab", lab_, "Probe from the hosts of this lab");
  app_->add_option("--dir", lab_base_, "Where labs keep their things");
  app_->add_option("--from", from_, "Only from these hosts of the lab, as in 0,3")->delimiter(',');
  app_->add_option("--host", host_, "Without a lab: which host of the fabric this is");
  app_->add_option("-d,--device", device_, "Without a lab: which device (the first)");
  app_->add_option("--merge", merge_, "Files of `--raw` instead of probes; - is standard input");
  app_->add_flag("--raw", raw_, "Print what was counted on this host, for --merge");
  app_->add_flag("--json", json_, "Print one JSON object; with --watch one a line");
  declare_probing(*app_);
  topology_.declare(*app_);
  app_->footer(
      "Probes go up to a switch and back to the host that sent them, over exact paths, before the\n"
      "data and at a bounded rate: a job may be running. Exit codes: 0 healthy, 1 something is\n"
      "broken, 2 could not run. See docs/controller.md.\n"
      "Examples:\n"
      "  mrc map --lab lab\n"
      "  mrc map --lab lab --watch\n"
      "  mrc map --topology fabric.toml --host 12\n"
      "  srun sh -c 'mrc map --topology fabric.toml --host $SLURM_PROCID --raw' | mrc map --merge "
      "-");
  return app_;
}

void MapCommand::declare_probing(CLI::App& app) {
  app.add_flag("--all", all_, "From every host to every T1 (and T2), not to a share of them");
  app.add_option("--count", count_, "Probes for each path; the more, the smaller a loss is found")
      ->check(CLI::Range(1U, kMaxCount))
      ->capture_default_str();
  app.add_option("--rate", probing_.rate, "Probes a second of each host")
      ->check(CLI::Range(1.0, kMaxRate))
      ->capture_default_str();
  app.add_option("--timeout", probing_.timeout_s, "After how long a probe is lost")
      ->transform(as_seconds({0.001, 60}))
      ->capture_default_str();
  app.add_flag("--watch", watch_, "Go on for ever, and tell what changes");
  app.add_option("--every", every_s_, "Time between two looks")
      ->transform(as_seconds({0.1, 3'600}))
      ->capture_default_str();
  app.add_option("--window", window_s_, "How long ago probes may be that a look takes into account")
      ->transform(as_seconds({0.1, 86'400}))
      ->capture_default_str();
}

fabric::TopologySpec MapCommand::described_fabric() const {
  const fabric::TopologySpec spec = topology_.spec();
  if (host_ >= spec.hosts)
    throw InputError(fmt::format("--host is from 0 to {} in this fabric", spec.hosts - 1));
  return spec;
}

// Loops are exact paths through the switches (SRv6), which packets of sockets cannot take: they
// would turn round in this host, and all of them be answered whatever is broken.
void check_can_probe(const std::string& device) {
  const std::optional<node::DeviceConfig> config = own_config(device);
  if (!config || config->backend == node::BackendKind::kWire) return;
  throw InputError(fmt::format(
      "{} has back end udp, whose packets take no path of our choice; mrc map needs back end wire "
      "(docs/controller.md), `mrc doctor --peer` asks a host over udp",
      config->name));
}

// What each host does: count, and say so.
ExitCode MapCommand::probe_here() const {
  const fabric::TopologySpec spec = described_fabric();
  const fabric::Topology topology(spec);
  const fabric::Routing routing(topology);
  check_can_probe(device_);
  const controller::Session session(device_);
  if (session.port_count() != spec.planes) {
    throw InputError(fmt::format("{} has {}, the fabric has {}", session.device(),
                                 counted(session.port_count(), "port", "ports"),
                                 counted(spec.planes, "plane", "planes")));
  }
  // Several at once would send more than the rate.
  const InstanceLock lock(session.directory() + "/map.lock");
  if (!lock.held())
    throw InputError(fmt::format("this host is being probed by process {} already", lock.holder()));
  controller::Prober prober(session, routing, fabric::loops_of(topology, host_, all_), probing_);
  do {
    HostResults results{.fabric = spec, .host = host_};
    results.loops = prober.run(watch_ ? prober.rounds_in(every_s_) : count_);
    fmt::print("{}\n", map::to_line(results));
    std::fflush(stdout);
  } while (watch_);
  return ExitCode::kOk;
}

std::vector<std::string> MapCommand::agent_words(const fabric::TopologySpec& spec,
                                                 unsigned host) const {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  std::vector<std::string> words;
  if (!lab_.empty())
    words = {self, "lab", "exec", "--name", lab_, "--dir", lab_base_, std::to_string(host)};
  const auto add = [&words](const char* name, const auto& value) {
    words.emplace_back(name);
    words.push_back(fmt::format("{}", value));
  };
  words.insert(words.end(), {self, "map", "--raw"});
  add("--host", host);
  add("--planes", spec.planes);
  add("--hosts", spec.hosts);
  add("--t0", spec.t0);
  add("--t1", spec.t1);
  add("--pods", spec.pods);
  add("--t2", spec.t2);
  add("--cables", spec.cables);
  add("--count", count_);
  add("--rate", probing_.rate);
  add("--timeout", probing_.timeout_s);
  if (all_) words.emplace_back("--all");
  if (!device_.empty()) add("--device", device_);
  if (watch_) {
    words.emplace_back("--watch");
    add("--every", every_s_);
  }
  return words;
}

void MapCommand::start_agents(map::Agents& agents) const {
  if (lab_.empty()) {
    agents.start(host_, agent_words(described_fabric(), host_));
    return;
  }
  const fabric::TopologySpec spec = map::lab_fabric(lab::Directory(lab_base_, lab_));
  std::set<unsigned> hosts(from_.begin(), from_.end());
  for (unsigned host = 0; from_.empty() && host < spec.hosts; ++host)
    hosts.insert(host);
  for (const unsigned host : hosts) {
    if (host >= spec.hosts) {
      throw InputError(
          fmt::format("there is no host {}; this lab has hosts 0 to {}", host, spec.hosts - 1));
    }
    agents.start(host, agent_words(spec, host));
  }
}

ExitCode MapCommand::show(const fabric::Survey& survey) const {
  if (json_) {
    map::print_json(survey, !watch_);
  } else {
    map::print_survey(survey);
  }
  return survey.diagnosis.healthy() ? ExitCode::kOk : ExitCode::kFailed;
}

ExitCode MapCommand::ask_hosts() const {
  const os::Interrupt interrupt;
  map::Agents agents;
  start_agents(agents);
  if (watch_) return watch(agents);
  const auto results = [&agents] {
    const LongWait wait(probing_line(agents));
    return agents.next();
  }();
  return results ? show(fabric::survey(*results)) : ExitCode::kInterrupted;
}

// One look after the other, until a signal ends it.
ExitCode MapCommand::watch(map::Agents& agents) const {
  fabric::SurveyWindow window({.every_s = every_s_, .window_s = window_s_});
  fabric::ChangeTracker changes;
  ExitCode code = kCouldNotRun;
  std::optional<LongWait> wait(probing_line(agents));
  while (auto look = agents.next()) {
    wait.reset();  // one look a period from here on
    window.add(std::move(*look));
    const fabric::Survey survey = window.survey();
    const bool first = code == kCouldNotRun;
    if (json_) {
      code = show(survey);
      continue;
    }
    code = survey.diagnosis.healthy() ? ExitCode::kOk : ExitCode::kFailed;
    if (first && survey.diagnosis.healthy()) fmt::print("{} healthy\n", wall_time());
    tell(changes.update(survey.diagnosis));
  }
  return code == kCouldNotRun ? ExitCode::kInterrupted : code;
}

ExitCode MapCommand::merge() const {
  std::vector<HostResults> results;
  for (const std::string& name : merge_) {
    std::ifstream file;
    if (name != "-") file.open(name);
    if (name != "-" && !file) throw InputError(name + ": cannot be read");
    std::istream& lines = name == "-" ? std::cin : file;
    unsigned number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      try {
        results.push_back(map::from_line(line));
      } catch (const InputError& error) {
        throw InputError(fmt::format("{}:{}: {}", name, number, error.what()));
      }
    }
  }
  return show(fabric::survey(results));
}

ExitCode MapCommand::run() {
  if (!merge_.empty()) return merge();
  if (lab_.empty() && app_->count("--host") == 0)
    throw InputError("give a lab (--lab), or the fabric (--topology ...) and this host (--host)");
  try {
    return raw_ && lab_.empty() ? probe_here() : ask_hosts();
  } catch (const InputError&) {
    throw;
  } catch (const std::exception& error) {
    fmt::print(stderr, "mrc map: {}\n", error.what());
    return kCouldNotRun;
  }
}

}  // namespace

std::unique_ptr<Command> make_map_command() { return std::make_unique<MapCommand>(); }

}  // namespace mrc::tool
