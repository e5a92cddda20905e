// mrc: one program, many sub-commands.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
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

// `mrc run [options] -- program ...`: the parser would take what follows "--" for arguments of
// `mrc`.
std::vector<char*> without_separator(int argc, char** argv) {
  std::vector<char*> words(argv, argv + argc);
  if (argc < 3 || std::string_view(argv[1]) != "run") return words;
  const auto is_option = [](const char* word) { return word[0] == '-' && word[1] == '-'; };
  auto word = words.begin() + 2;
  while (word != words.end() && is_option(*word) && std::string_view(*word) != "--")
    ++word;
  if (word != words.end() && std::string_view(*word) == "--") words.erase(word);
  return words;
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
  entries.push_back(declare(program, make_ctld_command()));
  entries.push_back(declare(program, make_map_command()));
  try {
    const std::vector<char*> words = without_separator(argc, argv);
    program.parse(static_cast<int>(words.size()), words.data());
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
