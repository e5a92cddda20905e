// mrc drain and mrc undrain: a part of the fabric out of use, and back.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "command.h"
#include "commands/drain/fabric_nodes.h"
#include "commands/drain/quiet.h"
#include "controller/drain.h"
#include "controller/session.h"
#include "fabric/drain.h"
#include "fabric/input_error.h"
#include "json_writer.h"
#include "lab/directory.h"
#include "os/interrupt.h"
#include "quantity_option.h"
#include "text.h"
#include "topology_flags.h"

namespace mrc::tool {
namespace {

using controller::CtlError;
using controller::FabricDrains;
using drain::FabricNodes;
using drain::Outcome;
using drain::Waiter;
using fabric::DrainTarget;
using fabric::InputError;

// What both have in common: which fabric, and from where.
class FabricCommand : public Command {
 public:
  ExitCode run() override;

 protected:
  explicit FabricCommand(const char* name) : name_(name) {}

  void declare_place(CLI::App& app);
  virtual ExitCode act(FabricNodes& nodes, const fabric::Routing& routing,
                       FabricDrains& drains) = 0;

  const char* name() const { return name_; }
  Waiter waiter(const std::string& part) const { return {part, Waiter::Seconds(patience_s_)}; }
  std::string on_hosts(const FabricDrains& drains) const {
    return "on " + counted(drains.node_count(), "host", "hosts");
  }

  std::string part_;

 private:
  FabricNodes find_nodes() const;

  const char* name_;
  CLI::App* app_ = nullptr;
  TopologyFlags topology_;
  std::string lab_;
  std::string lab_base_ = lab::Directory::default_base();
  std::string device_;
  unsigned host_ = 0;
  double patience_s_ = 30;
};

void FabricCommand::declare_place(CLI::App& app) {
  app_ = &app;
  app.add_option("--lab", lab_, "All hosts of this lab");
  app.add_option("--dir", lab_base_, "Where labs keep their things");
  app.add_option("--host", host_, "Without a lab: which host of the fabric this is");
  app.add_option("-d,--device", device_, "Without a lab: which device (the first)");
  app.add_option("--timeout", patience_s_, "How long to wait at most, in seconds or as 500ms")
      ->transform(as_seconds({0.1, 86'400}))
      ->capture_default_str();
  topology_.declare(app);
}

FabricNodes FabricCommand::find_nodes() const {
  if (!lab_.empty()) return drain::nodes_of_lab(lab::Directory(lab_base_, lab_));
  if (app_->count("--host") == 0)
    throw InputError("give a lab (--lab), or the fabric (--topology ...) and this host (--host)");
  const fabric::TopologySpec spec = topology_.spec();
  if (host_ >= spec.hosts)
    throw InputError(fmt::format("--host is from 0 to {} in this fabric", spec.hosts - 1));
  return drain::own_node(spec, host_, device_);
}

ExitCode FabricCommand::run() {
  const os::Interrupt interrupt;
  const auto complain = [this](const std::exception& error, ExitCode code) {
    fmt::print(stderr, "mrc {}: {}\n", name_, error.what());
    return code;
  };
  try {
    FabricNodes nodes = find_nodes();
    const fabric::Topology topology(nodes.spec);
    const fabric::Routing routing(topology);
    FabricDrains drains(routing, std::move(nodes.nodes));
    return act(nodes, routing, drains);
  } catch (const InputError&) {
    throw;
  } catch (const CtlError& error) {
    return complain(error, ExitCode::kFailed);
  } catch (const std::runtime_error& error) {
    return complain(error, ExitCode::kUsage);
  }
}

// --- mrc drain

class DrainCommand final : public FabricCommand {
 public:
  DrainCommand() : FabricCommand("drain") {}
  CLI::App* declare(CLI::App& program) override;

 private:
  ExitCode act(FabricNodes& nodes, const fabric::Routing& routing, FabricDrains& drains) override;
  void show(const FabricDrains& drains) const;
  ExitCode drain(FabricNodes& nodes, const DrainTarget& target, FabricDrains& drains);
  // Of a part that stays drained all the same.
  ExitCode unfinished(const Waiter& waiter, const std::string& part, Outcome outcome) const;

  bool force_ = false;
  bool json_ = false;
};

CLI::App* DrainCommand::declare(CLI::App& program) {
  CLI::App* app =
      program.add_subcommand("drain", "Take a cable, switch, port or plane out of use, under load");
  app->add_option("part", part_,
                  "t1:3/plane:0, t0:0/t1:2/plane:1, host:2/plane:1, host:2 or plane:1; without: "
                  "list what is drained");
  app->add_flag("--force", force_, "Even where a pair of hosts is left without a path");
  app->add_flag("--json", json_, "List as one JSON object");
  declare_place(*app);
  app->footer(
      "Denies all paths that cross the part, on every host, and waits until nothing goes there.\n"
      "It stays drained until `mrc undrain`, whatever ends or starts anew. Exit codes: 0 drained,\n"
      "1 refused and nothing changed, 2 could not run, 4 something still goes there.\n"
      "Examples:\n"
      "  mrc drain t1:3/plane:0 --lab lab\n"
      "  mrc drain --lab lab\n"
      "  srun sh -c 'mrc drain t1:3/plane:0 --topology fabric.toml --host $SLURM_PROCID'");
  return app;
}

ExitCode DrainCommand::act(FabricNodes& nodes, const fabric::Routing& routing,
                           FabricDrains& drains) {
  if (part_.empty()) {
    show(drains);
    return ExitCode::kOk;
  }
  const DrainTarget target = fabric::parse_drain_target(part_, routing.topology());
  const InstanceLock lock = drain::lock_for_change(nodes);
  return drain(nodes, target, drains);
}

const char* by_words(node::DrainedBy by) {
  return by == node::DrainedBy::kWatch ? "mrc ctld" : "command";
}

void DrainCommand::show(const FabricDrains& drains) const {
  const std::vector<FabricDrains::Entry> entries = drains.list();
  if (json_) {
    JsonWriter json(stdout);
    json.begin_object();
    json.value("schema", "mrc.drain/1");
    json.value("hosts", std::uint64_t{drains.node_count()});
    json.begin_array("drained");
    for (const FabricDrains::Entry& entry : entries) {
      json.begin_object();
      json.value("part", entry.name);
      json.value("by", by_words(entry.by));
      json.value("hosts", entry.nodes);
      json.end_object();
    }
    json.end_array();
    json.end_object();
    fmt::print("\n");
    return;
  }
  for (const FabricDrains::Entry& entry : entries) {
    fmt::print("{} by {}", entry.name, by_words(entry.by));
    if (entry.nodes < drains.node_count())
      fmt::print(", on {} of {} hosts only", entry.nodes, drains.node_count());
    fmt::print("\n");
  }
  if (entries.empty()) fmt::print("nothing is drained\n");
}

ExitCode DrainCommand::drain(FabricNodes& nodes, const DrainTarget& target, FabricDrains& drains) {
  if (!force_) {
    if (const auto pair = drains.would_cut_off(target)) {
      throw CtlError(
          fmt::format("{} is the only way between hosts {} and {} now; nothing changed "
                      "(--force drains it all the same)",
                      target.name, pair->one, pair->other));
    }
  }
  Waiter waiting = waiter(target.name);
  fmt::print("{}: draining {}\n", target.name, on_hosts(drains));
  std::fflush(stdout);
  drains.drain(target, node::DrainedBy::kCommand);
  const Outcome followed = waiting.until_followed(drains, !force_);
  if (followed == Outcome::kStranded) {
    drains.take_back();
    waiter(target.name).until_followed(drains, false);
    throw CtlError(
        fmt::format("{} is the only way that {} may take; nothing changed (--force "
                    "drains it all the same)",
                    target.name, waiting.obstacle()));
  }
  if (followed != Outcome::kDone) return unfinished(waiting, target.name, followed);
  const Outcome quiet = waiting.until_quiet(nodes, target);
  if (quiet != Outcome::kDone) return unfinished(waiting, target.name, quiet);
  fmt::print("{}: drained; nothing goes there any more\n", target.name);
  return ExitCode::kOk;
}

ExitCode DrainCommand::unfinished(const Waiter& waiter, const std::string& part,
                                  Outcome outcome) const {
  fmt::print(stderr, "mrc {}: still waiting for {}; {} stays drained\n", name(), waiter.obstacle(),
             part);
  return outcome == Outcome::kInterrupted ? ExitCode::kInterrupted : ExitCode::kTimeout;
}

// --- mrc undrain

class UndrainCommand final : public FabricCommand {
 public:
  UndrainCommand() : FabricCommand("undrain") {}
  CLI::App* declare(CLI::App& program) override;

 private:
  ExitCode act(FabricNodes& nodes, const fabric::Routing& routing, FabricDrains& drains) override;
  ExitCode undrain(const std::string& name, FabricDrains& drains) const;
};

CLI::App* UndrainCommand::declare(CLI::App& program) {
  CLI::App* app = program.add_subcommand("undrain", "Give back what `mrc drain` took out of use");
  app->add_option("part", part_, "As for `mrc drain`; all: everything that is drained")->required();
  declare_place(*app);
  app->footer(
      "Example:\n"
      "  mrc undrain t1:3/plane:0 --lab lab");
  return app;
}

ExitCode UndrainCommand::act(FabricNodes& nodes, const fabric::Routing& routing,
                             FabricDrains& drains) {
  const InstanceLock lock = drain::lock_for_change(nodes);
  const std::vector<FabricDrains::Entry> entries = drains.list();
  if (part_ == "all") {
    for (const FabricDrains::Entry& entry : entries)
      if (const ExitCode code = undrain(entry.name, drains); code != ExitCode::kOk) return code;
    if (entries.empty()) fmt::print("nothing is drained\n");
    return ExitCode::kOk;
  }
  const auto is_drained = [&](const std::string& name) {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const FabricDrains::Entry& entry) { return entry.name == name; });
  };
  // A part of a fabric that was another one then can still be given back.
  if (is_drained(part_)) return undrain(part_, drains);
  const std::string name = fabric::parse_drain_target(part_, routing.topology()).name;
  if (!is_drained(name)) throw InputError(name + " is not drained");
  return undrain(name, drains);
}

ExitCode UndrainCommand::undrain(const std::string& part, FabricDrains& drains) const {
  Waiter waiting = waiter(part);
  drains.undrain(part);
  const Outcome outcome = waiting.until_followed(drains, false);
  if (outcome == Outcome::kDone) {
    fmt::print("{}: back in use {}\n", part, on_hosts(drains));
    return ExitCode::kOk;
  }
  fmt::print(stderr, "mrc {}: {} is back in use, but still unknown to {}\n", name(), part,
             waiting.obstacle());
  return outcome == Outcome::kInterrupted ? ExitCode::kInterrupted : ExitCode::kTimeout;
}

}  // namespace

std::unique_ptr<Command> make_drain_command() { return std::make_unique<DrainCommand>(); }
std::unique_ptr<Command> make_undrain_command() { return std::make_unique<UndrainCommand>(); }

}  // namespace mrc::tool
