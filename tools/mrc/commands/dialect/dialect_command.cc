// mrc dialect: what of the wire is open, and what a capture says about it.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "command.h"
#include "commands/dialect/detection.h"
#include "failure.h"
#include "output_file.h"
#include "wire/dialect.h"

namespace mrc::tool {
namespace {

class DialectCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  static void print_fields();
  ExitCode run_detect() const;

  CLI::App* fields_ = nullptr;
  CLI::App* detect_ = nullptr;
  std::string file_;
  std::string config_;
  std::string device_ = "mrc0";
  bool json_ = false;
};

CLI::App* DialectCommand::declare(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "dialect", "Wire choices that public facts leave open, and which of them a capture shows");
  app->require_subcommand(1);
  fields_ = app->add_subcommand("fields", "List the fields of a dialect and their values");
  detect_ = app->add_subcommand("detect", "Say which choices explain the MRC traffic of a capture");
  detect_->add_option("file", file_, "Capture, pcapng or pcap, from either end or the middle")
      ->required();
  detect_->add_flag("--json", json_, "Print one JSON object");
  detect_->add_option("--config", config_, "Write the dialect section of a configuration here");
  detect_->add_option("-d,--device", device_, "Device that the section is for, default mrc0");
  detect_->footer(
      "A capture that begins before the connections do tells most: tcpdump -i eth0 -w card.pcapng\n"
      "udp. A field that no packet shows is \"cannot tell\"; one that packets contradict is\n"
      "\"CONTRADICTED\" and stays out of the configuration.\n"
      "Exit code 3 when there is no MRC in the file or a field is contradicted.");
  return app;
}

void DialectCommand::print_fields() {
  for (const wire::DialectField& field : wire::dialect_fields()) {
    fmt::print("{:<13} {}\n", field.name, field.meaning);
    fmt::print("{:<13}   {}; openmrc {}, card {}\n", "", wire::dialect_rule(field).view(),
               wire::dialect_value(wire::kOpenMrc, field).view(),
               wire::dialect_value(wire::kCard, field).view());
  }
}

ExitCode DialectCommand::run_detect() const {
  const dialect::Detection detection = dialect::detect(file_);
  if (json_) {
    fmt::print("{}\n", dialect::to_json(detection).dump(2));
  } else {
    dialect::print(detection);
  }
  bool clear = detection.traffic.mrc > 0;
  for (const capture::Finding& finding : detection.findings)
    clear &= finding.verdict != capture::Verdict::kContradicted;
  if (!config_.empty() && detection.traffic.mrc > 0) {
    write_file(config_, [&](std::ostream& out) { out << dialect::to_config(detection, device_); });
  }
  return clear ? ExitCode::kOk : ExitCode::kWrongData;
}

ExitCode DialectCommand::run() {
  if (fields_->parsed()) {
    print_fields();
    return ExitCode::kOk;
  }
  try {
    return run_detect();
  } catch (const Failure& failure) {
    fmt::print(stderr, "mrc dialect detect: {}\n", failure.what());
    return exit_code_of(failure);
  }
}

}  // namespace

std::unique_ptr<Command> make_dialect_command() { return std::make_unique<DialectCommand>(); }

}  // namespace mrc::tool
