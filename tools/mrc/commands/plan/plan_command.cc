// mrc plan: what a fabric takes, with planes and without.
#include <CLI/CLI.hpp>

#include "command.h"
#include "commands/plan/report.h"
#include "fabric/planner.h"

namespace mrc::tool {
namespace {

class PlanCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  fabric::PlanInput input_;
  bool json_ = false;
};

CLI::App* PlanCommand::declare(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "plan", "Count switches, optics and power of a fabric, with planes and without");
  app->add_option("--nics", input_.nics, "NICs to connect")->capture_default_str();
  app->add_option("--nic-gbps", input_.nic_gbps, "Speed of a NIC, all its planes together")
      ->capture_default_str();
  app->add_option("--planes", input_.planes, "Planes that a NIC's speed is split over")
      ->capture_default_str();
  app->add_option("--switch-tbps", input_.switch_tbps, "Capacity of a switch")
      ->capture_default_str();
  app->add_option("--port-gbps", input_.port_gbps,
                  "Port speed of the design with one plane (default: that of the NIC)");
  app->add_option("--max-ports", input_.max_ports,
                  "Most ports a switch can be split into (default: no limit)");
  app->add_option("--optic-gbps", input_.optic_gbps,
                  "Speed of a transceiver (default: that of the NIC)");
  app->add_option("--switch-watts", input_.switch_watts, "Power of a switch without transceivers");
  app->add_option("--optic-watts", input_.optic_watts, "Power of a transceiver");
  app->add_flag("--json", json_, "Print JSON");
  app->footer(
      "Examples:\n"
      "  mrc plan\n"
      "  mrc plan --nics 32768 --planes 4 --switch-watts 1200 --optic-watts 15");
  return app;
}

ExitCode PlanCommand::run() {
  const fabric::FabricComparison plans = fabric::plan_fabric(input_);
  json_ ? plan::print_json(input_, plans) : plan::print_text(input_, plans);
  return ExitCode::kOk;
}

}  // namespace

std::unique_ptr<Command> make_plan_command() { return std::make_unique<PlanCommand>(); }

}  // namespace mrc::tool
