// mrc plan: what a fabric takes, with planes and without.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <string>

#include "command.h"
#include "commands/plan/build.h"
#include "commands/plan/report.h"
#include "fabric/input_error.h"
#include "fabric/planner.h"
#include "quantity_option.h"

namespace mrc::tool {
namespace {

class PlanCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  fabric::PlanInput input_;
  plan::BuildOptions build_;
  bool json_ = false;
};

CLI::App* PlanCommand::declare(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "plan", "Count switches, optics and power of a fabric, with planes and without");
  app->add_option("--nics", input_.nics, "NICs to connect")
      ->transform(as_count())
      ->capture_default_str();
  app->add_option("--nic-gbps", input_.nic_gbps, "Speed of a NIC, all its planes together")
      ->transform(as_gbps())
      ->capture_default_str();
  app->add_option("--planes", input_.planes, "Planes that a NIC's speed is split over")
      ->capture_default_str();
  app->add_option("--switch-tbps", input_.switch_tbps, "Capacity of a switch")
      ->transform(as_tbps())
      ->capture_default_str();
  app->add_option("--port-gbps", input_.port_gbps,
                  "Port speed of the design with one plane (default: that of the NIC)")
      ->transform(as_gbps());
  app->add_option("--max-ports", input_.max_ports,
                  "Most ports a switch can be split into (default: no limit)");
  app->add_option("--optic-gbps", input_.optic_gbps,
                  "Speed of a transceiver (default: that of the NIC)")
      ->transform(as_gbps());
  app->add_option("--switch-watts", input_.switch_watts, "Power of a switch without transceivers");
  app->add_option("--optic-watts", input_.optic_watts, "Power of a transceiver");
  app->add_flag("--json", json_, "Print JSON");
  app->add_option("--out", build_.folder,
                  "Write the topology file, the list of cables and the hosts' mrc.toml here");
  app->add_option(
      "--hosts", build_.hosts,
      "Hosts to write an mrc.toml for: N or N-M (default: all, if there are up to 256)");
  app->add_option("--host-port-prefix", build_.host_ports.prefix,
                  "Interfaces of hosts are called so, then the plane")
      ->capture_default_str();
  app->add_option("--switch-port-prefix", build_.switch_ports.prefix,
                  "Ports of switches are called so, then 1, 2, ...")
      ->capture_default_str();
  app->footer(
      "Examples:\n"
      "  mrc plan\n"
      "  mrc plan --nics 64 --planes 4 --nic-gbps 400 --switch-tbps 3.2 --out site\n"
      "  mrc plan --nics 32768 --planes 4 --switch-watts 1200 --optic-watts 15");
  return app;
}

ExitCode PlanCommand::run() {
  const fabric::FabricComparison plans = fabric::plan_fabric(input_);
  if (build_.folder.empty() && !build_.hosts.empty())
    throw fabric::InputError("--hosts says what to write, and needs --out FOLDER");
  std::string written;
  if (!build_.folder.empty()) written = plan::write_build(input_, plans.multi_plane, build_);
  json_ ? plan::print_json(input_, plans) : plan::print_text(input_, plans);
  if (!json_) fmt::print("{}", written);
  return ExitCode::kOk;
}

}  // namespace

std::unique_ptr<Command> make_plan_command() { return std::make_unique<PlanCommand>(); }

}  // namespace mrc::tool
