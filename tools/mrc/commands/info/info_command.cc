// mrc info: devices, ports, GIDs, limits, profiles, environment and versions.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "command.h"
#include "commands/info/environment.h"
#include "commands/info/inventory.h"
#include "node/known_variables.h"

namespace mrc::tool {
namespace {

class InfoCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  static void print_variables();

  std::string device_;
  bool json_ = false;
  bool variables_ = false;
};

CLI::App* InfoCommand::declare(CLI::App& program) {
  CLI::App* app = program.add_subcommand("info", "Show the MRC devices of this host");
  app->add_option("-d,--device", device_, "Only this device");
  app->add_flag("--json", json_, "Print one JSON object");
  app->add_flag("--env", variables_, "List the variables that are understood, and their values");
  app->footer(
      "Exit code 1 when the configuration is broken or a device cannot be opened; then\n"
      "`mrc doctor` says what to do.");
  return app;
}

void InfoCommand::print_variables() {
  const std::vector<info::Variable> set = info::environment();
  for (const node::KnownVariable& known : node::known_variables()) {
    const auto found = std::ranges::find(set, known.name, &info::Variable::name);
    fmt::print("{:<18} {:<24} {}\n", known.name, found == set.end() ? "-" : found->value,
               known.meaning);
  }
}

ExitCode InfoCommand::run() {
  if (variables_) {
    print_variables();
    return ExitCode::kOk;
  }
  const nlohmann::ordered_json document = info::inventory(device_);
  if (json_) {
    fmt::print("{}\n", document.dump(2));
  } else {
    info::print_inventory(document);
  }
  if (document.contains("error")) {
    fmt::print(stderr, "mrc info: {}\n", document["error"].get<std::string>());
    return ExitCode::kFailed;
  }
  if (!device_.empty() && document["devices"].empty()) {
    fmt::print(stderr, "mrc info: there is no device {}\n", device_);
    return ExitCode::kFailed;
  }
  for (const auto& device : document["devices"]) {
    if (device.contains("error")) return ExitCode::kFailed;
  }
  return ExitCode::kOk;
}

}  // namespace

std::unique_ptr<Command> make_info_command() { return std::make_unique<InfoCommand>(); }

}  // namespace mrc::tool
