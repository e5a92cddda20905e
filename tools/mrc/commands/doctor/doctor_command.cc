// mrc doctor: what would be slow or fail on this host, and what to do about it.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "command.h"
#include "commands/doctor/check.h"
#include "commands/doctor/responder.h"
#include "device_facts.h"
#include "fabric/input_error.h"
#include "failure.h"
#include "node/config.h"
#include "os/interrupt.h"
#include "quantity_option.h"
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
  ExitCode serve() const;

  doctor::PeerHost peer_{.port = doctor::kResponderPort};
  std::string device_;
  bool serve_ = false;
  bool json_ = false;
};

CLI::App* DoctorCommand::declare(CLI::App& program) {
  CLI::App* app = program.add_subcommand("doctor", "Say what is slow or broken on this host");
  app->add_option("--peer", peer_.host,
                  "Look at the ways to this host instead of to ourselves; best with --serve there")
      ->type_name("HOST");
  app->add_flag("--serve", serve_, "Be the other end of --peer, until Ctrl-C");
  app->add_option("-d,--device", device_, "With --serve: which device (the first)");
  app->add_option("-p,--port", peer_.port, "TCP port at which --serve answers")
      ->check(as_port())
      ->capture_default_str();
  app->add_flag("--json", json_, "Print one JSON object");
  app->footer(
      "Each line is ok, slow or broken. Exit code 1 when something is broken.\n"
      "Between two hosts: mrc doctor --serve on one, mrc doctor --peer HOST on the other.");
  return app;
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
  const nlohmann::ordered_json document = {
      {"schema", "mrc.doctor"}, {"version", 1}, {"findings", doctor::to_json(findings)}};
  fmt::print("{}\n", document.dump(2));
}

ExitCode DoctorCommand::serve() const {
  const std::optional<node::DeviceConfig> config = own_config(device_);
  if (!config) {
    const std::string error = node::load_config().error;
    throw fabric::InputError(error.empty() ? "there is no device " + device_ : error);
  }
  const os::Interrupt interrupt;
  try {
    doctor::serve(*config, peer_.port);
  } catch (const Failure& failure) {
    fmt::print(stderr, "mrc doctor: {}\n", failure.what());
    return exit_code_of(failure);
  }
  return ExitCode::kOk;
}

ExitCode DoctorCommand::run() {
  if (serve_) return serve();
  const Findings findings = doctor::examine(peer_).findings;
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
