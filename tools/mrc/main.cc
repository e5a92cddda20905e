// mrc: one program, many sub-commands.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
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
#include "os/notice.h"

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
    {"demo", make_demo_command},     {"sim", make_sim_command},
    {"fabric", make_fabric_command}, {"plan", make_plan_command},
    {"lab", make_lab_command},       {"run", make_run_command},
    {"perf", make_perf_command},     {"info", make_info_command},
    {"doctor", make_doctor_command}, {"check", make_check_command},
    {"ctl", make_ctl_command},       {"ctld", make_ctld_command},
    {"map", make_map_command},       {"dialect", make_dialect_command},
    {"key", make_key_command},       {"stat", make_stat_command},
    {"top", make_top_command},       {"exporter", make_exporter_command},
    {"view", make_view_command},     {"twin", make_twin_command},
    {"drain", make_drain_command},   {"undrain", make_undrain_command},
    {"manual", make_manual_command},
};

bool is_command(std::string_view word) {
  return std::any_of(std::begin(kCommands), std::end(kCommands),
                     [&](const auto& c) { return c.name == word; });
}

std::string commands() {
  std::string names;
  for (const auto& command : kCommands)
    names += (names.empty() ? "" : ", ") + std::string(command.name);
  return names;
}

// `mrc help sim` is `mrc sim --help`, `mrc help` is `mrc --help`.
void help_as_option(std::vector<char*>& words) {
  static char option[] = "--help";
  if (words.size() < 2 || std::string_view(words[1]) != "help") return;
  words.erase(words.begin() + 1);
  words.push_back(option);
}

// The command that the first word names, or all of them: hundreds of options that nobody asked for
// take as much memory as a simulated rack. The manual is about all.
std::vector<Entry> entries_for(std::string_view first_word, CLI::App& program) {
  const bool named = is_command(first_word) && first_word != "manual";
  std::vector<Entry> entries;
  for (const auto& [name, make] : kCommands) {
    if (named && name != first_word) continue;
    std::unique_ptr<Command> command = make();
    if (command == nullptr) continue;  // left out of this build
    CLI::App* const app = command->declare(program);
    entries.push_back({app, std::move(command)});
  }
  return entries;
}

// With the commands that were given: "mrc lab up".
std::string name_of(const CLI::App& program) {
  std::string name = "mrc";
  for (auto chosen = program.get_subcommands(); !chosen.empty();
       chosen = chosen.front()->get_subcommands())
    name += " " + chosen.front()->get_name();
  return name;
}

// The parser's words for what cannot be a number of the option's size.
std::string in_our_words(const std::string& what) {
  constexpr std::string_view kBegin = "Could not convert: ";
  constexpr std::string_view kMiddle = " = ";
  const std::size_t middle = what.find(kMiddle);
  if (!what.starts_with(kBegin) || middle == std::string::npos) return what;
  const std::string option = what.substr(kBegin.size(), middle - kBegin.size());
  const std::string value = what.substr(middle + kMiddle.size());
  return option + ": '" + value + "' is no number, or none that this option can be";
}

// One line, whatever the parser has to say.
ExitCode report_usage(const CLI::App& program, const std::string& what) {
  const std::string name = name_of(program);
  std::string line = in_our_words(what);
  std::replace(line.begin(), line.end(), '\n', ' ');
  fmt::print(stderr, "{}: {} (try: {} --help)\n", name, line, name);
  return ExitCode::kUsage;
}

// What was given an empty text, as a script gives it by a variable that is not set: nobody means
// that, and many commands would take it for something that was not given. Words of programs that
// are started may be empty.
std::string empty_option(const CLI::App& app) {
  for (const CLI::Option* const option : app.get_options()) {
    const bool is_list = option->get_items_expected_max() > 1;
    if (option->get_items_expected_min() == 0 || (option->get_positional() && is_list)) continue;
    if (std::ranges::any_of(option->results(), &std::string::empty)) return option->get_name();
  }
  for (const CLI::App* const chosen : app.get_subcommands()) {
    std::string name = empty_option(*chosen);
    if (!name.empty()) return name;
  }
  return {};
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

ExitCode run_program(int argc, char** argv) {
  CLI::App program{"MRC, the Multipath Reliable Connection, in software.", "mrc"};
  program.set_version_flag("--version", "mrc " MRC_VERSION, "Print the version and exit");
  program.set_help_flag("-h,--help", "Print this help and exit");
  program.require_subcommand(1);
  program.footer(std::string(kExitCodesHelp) +
                 "\n`mrc <command> --help` lists the options of a command.");

  std::vector<char*> words = without_separator(argc, argv);
  help_as_option(words);
  const std::string first = words.size() > 1 ? words[1] : "";
  if (!first.empty() && first.front() != '-' && !is_command(first))
    return report_usage(program, "there is no command '" + first + "'; there are " + commands());
  const std::vector<Entry> entries = entries_for(first, program);
  if (entries.empty())
    return report_usage(program, "this build has no '" + first + "', " + kWhereEverythingIs);
  try {
    program.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return report_usage(program, error.what());
    program.exit(error);
    return ExitCode::kOk;
  }
  const std::string empty = empty_option(program);
  if (!empty.empty()) return report_usage(program, empty + " must not be empty");
  try {
    for (const Entry& entry : entries) {
      if (entry.app->parsed()) return entry.command->run();
    }
  } catch (const fabric::InputError& error) {
    return report_usage(program, error.what());
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", name_of(program), error.what());
    return ExitCode::kFailed;
  }
  return ExitCode::kUsage;
}

// What was printed and did not get out (a full disk, say) is a failure like any other. A stream
// forgets why an earlier part of it failed; what fails now mostly fails for the same reason.
ExitCode flushed(ExitCode code) {
  errno = 0;
  const bool was_whole = std::ferror(stdout) == 0;
  if (std::fflush(stdout) == 0 && was_whole) return code;
  if (errno == 0) {
    std::clearerr(stdout);
    std::fputc('\n', stdout);
    std::fflush(stdout);
  }
  const char* const why = errno == 0 ? "not all of it could be written" : std::strerror(errno);
  std::fprintf(stderr, "mrc: standard output: %s\n", why);
  return code == ExitCode::kOk ? ExitCode::kFailed : code;
}

}  // namespace
}  // namespace mrc::tool

int main(int argc, char** argv) {
  // Until a device is opened, which has a log for it: ranks wait for each other before.
  mrc::os::set_notice_sink([](const char* line) { std::fprintf(stderr, "mrc: %s\n", line); });
  try {
    return static_cast<int>(mrc::tool::flushed(mrc::tool::run_program(argc, argv)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mrc: %s\n", error.what());
    return static_cast<int>(mrc::tool::ExitCode::kFailed);
  }
}
