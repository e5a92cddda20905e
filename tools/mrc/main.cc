// mrc: one program, many sub-commands.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>
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

constexpr struct {
  std::string_view name;
  std::unique_ptr<Command> (*make)();
} kCommands[] = {
    {"demo", make_demo_command},       {"sim", make_sim_command},   {"fabric", make_fabric_command},
    {"plan", make_plan_command},       {"lab", make_lab_command},   {"run", make_run_command},
    {"perf", make_perf_command},       {"info", make_info_command}, {"doctor", make_doctor_command},
    {"ctl", make_ctl_command},         {"ctld", make_ctld_command}, {"map", make_map_command},
    {"dialect", make_dialect_command}, {"key", make_key_command},
};

// The command that the first word names, or all of them: hundreds of options that nobody asked for
// take as much memory as a simulated rack.
std::vector<Entry> declare(CLI::App& program, std::string_view first_word) {
  const bool named = std::any_of(std::begin(kCommands), std::end(kCommands),
                                 [&](const auto& c) { return c.name == first_word; });
  std::vector<Entry> entries;
  for (const auto& [name, make] : kCommands) {
    if (named && name != first_word) continue;
    std::unique_ptr<Command> command = make();
    CLI::App* const app = command->declare(program);
    entries.push_back({app, std::move(command)});
  }
  return entries;
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

  const std::vector<Entry> entries = declare(program, argc > 1 ? argv[1] : "");
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
