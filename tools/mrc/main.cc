// mrc: one program, many sub-commands.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "command.h"
#include "exit_code.h"
#include "fabric/input_error.h"

namespace mrc::tool {
namespace {

struct Entry {
  CLI::App* app = nullptr;
  std::unique_ptr<Command> command;
};

Entry declare(CLI::App& program, std::unique_ptr<Command> command) {
  CLI::App* app = command->declare(program);
  return {app, std::move(command)};
}

// One line, whatever the parser has to say.
ExitCode report_usage(const CLI::App& program, const std::string& what) {
  std::string name = "mrc";
  for (auto chosen = program.get_subcommands(); !chosen.empty();
       chosen = chosen.front()->get_subcommands())
    name += " " + chosen.front()->get_name();
  std::string line = what;
  std::replace(line.begin(), line.end(), '\n', ' ');
  fmt::print(stderr, "{}: {} (try: {} --help)\n", name, line, name);
  return ExitCode::kUsage;
}

ExitCode run(int argc, char** argv) {
  CLI::App program{"MRC, the Multipath Reliable Connection, in software.", "mrc"};
  program.set_version_flag("--version", "mrc " MRC_VERSION, "Print the version and exit");
  program.set_help_flag("-h,--help", "Print this help and exit");
  program.require_subcommand(1);
  program.footer(
      "Exit codes: 0 ok, 1 failed, 2 usage, 3 data wrong, 4 timeout, 77 skipped.\n"
      "`mrc <command> --help` lists the options of a command.");

  std::vector<Entry> entries;
  entries.push_back(declare(program, make_demo_command()));
  entries.push_back(declare(program, make_sim_command()));
  entries.push_back(declare(program, make_fabric_command()));
  entries.push_back(declare(program, make_plan_command()));
  entries.push_back(declare(program, make_lab_command()));
  entries.push_back(declare(program, make_run_command()));
  entries.push_back(declare(program, make_perf_command()));
  entries.push_back(declare(program, make_info_command()));
  entries.push_back(declare(program, make_doctor_command()));
  entries.push_back(declare(program, make_ctl_command()));
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return report_usage(program, error.what());
    program.exit(error);
    return ExitCode::kOk;
  }
  try {
    for (const Entry& entry : entries) {
      if (entry.app->parsed()) return entry.command->run();
    }
  } catch (const fabric::InputError& error) {
    return report_usage(program, error.what());
  }
  return ExitCode::kUsage;
}

}  // namespace
}  // namespace mrc::tool

int main(int argc, char** argv) {
  try {
    return static_cast<int>(mrc::tool::run(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mrc: %s\n", error.what());
    return static_cast<int>(mrc::tool::ExitCode::kFailed);
  }
}
