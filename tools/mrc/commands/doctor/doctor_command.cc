// mrc doctor: what would be slow or fail on this host, and what to do about it.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "command.h"
#include "commands/doctor/check.h"
#include "node/config.h"
#include "terminal.h"

namespace mrc::tool {
namespace {

using doctor::Finding;
using doctor::Findings;
using doctor::Verdict;

class DoctorCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  Findings examine() const;

  std::string peer_;
  bool json_ = false;
};

CLI::App* DoctorCommand::declare(CLI::App& program) {
  CLI::App* app = program.add_subcommand("doctor", "Say what is slow or broken on this host");
  app->add_option("--peer", peer_, "Probe this host (its GID) on every plane instead of ourselves")
      ->type_name("GID");
  app->add_flag("--json", json_, "Print one JSON object");
  app->footer("Each line is ok, slow or broken. Exit code 1 when something is broken.");
  return app;
}

Findings DoctorCommand::examine() const {
  Findings findings;
  const node::ConfigResult config = node::load_config();
  if (config.error.empty()) {
    findings.push_back(
        {Verdict::kOk,
         "configuration",
         fmt::format("{} device{}", config.devices.size(), config.devices.size() == 1 ? "" : "s"),
         {}});
  } else {
    findings.push_back({Verdict::kBroken, "configuration", config.error,
                        "correct it; docs/configuration.md lists what may be set"});
  }
  doctor::check_environment(findings);
  for (const node::DeviceConfig& device : config.devices) {
    doctor::check_interfaces(device, findings);
    doctor::check_state_directory(device, findings);
    doctor::check_device(device, peer_, findings);
  }
  doctor::check_socket_buffers(findings);
  doctor::check_segmentation(findings);
  doctor::check_netlink(findings);
  doctor::check_limits(findings);
  doctor::check_processors(findings);
  doctor::check_libraries(findings);
  doctor::check_real_devices(findings);
  return findings;
}

void print_text(const Findings& findings) {
  const Terminal terminal(stdout);
  std::size_t width = 0;
  for (const Finding& finding : findings)
    width = std::max(width, finding.what.size());
  for (const Finding& finding : findings) {
    const std::string verdict = fmt::format("{:<6}", doctor::name_of(finding.verdict));
    const std::string shown = finding.verdict == Verdict::kOk     ? terminal.green(verdict)
                              : finding.verdict == Verdict::kSlow ? terminal.yellow(verdict)
                                                                  : terminal.red(verdict);
    fmt::print("{}  {:<{}}  {}\n", shown, finding.what, width, finding.found);
    if (!finding.fix.empty()) fmt::print("        {:<{}}  fix: {}\n", "", width, finding.fix);
  }
}

void print_json(const Findings& findings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings)
    list.push_back({{"verdict", doctor::name_of(finding.verdict)},
                    {"what", finding.what},
                    {"found", finding.found},
                    {"fix", finding.fix}});
  const nlohmann::ordered_json document = {
      {"schema", "mrc.doctor"}, {"version", 1}, {"findings", list}};
  fmt::print("{}\n", document.dump(2));
}

ExitCode DoctorCommand::run() {
  const Findings findings = examine();
  if (json_) {
    print_json(findings);
  } else {
    print_text(findings);
  }
  const bool broken = std::ranges::any_of(
      findings, [](const Finding& finding) { return finding.verdict == Verdict::kBroken; });
  return broken ? ExitCode::kFailed : ExitCode::kOk;
}

}  // namespace

std::unique_ptr<Command> make_doctor_command() { return std::make_unique<DoctorCommand>(); }

}  // namespace mrc::tool
