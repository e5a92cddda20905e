// mrc manual: manual pages and completions of shells, from what all commands declare.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "commands/manual/command_text.h"
#include "commands/manual/completion.h"
#include "commands/manual/man_page.h"
#include "fabric/input_error.h"
#include "output_file.h"

namespace mrc::tool {
namespace {

namespace fs = std::filesystem;
using manual::CommandText;

class ManualCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  void write_all(const CommandText& program) const;

  const CLI::App* program_ = nullptr;
  std::string command_;
  std::string shell_;
  std::string folder_;
};

CLI::App* ManualCommand::declare(CLI::App& program) {
  program_ = &program;
  CLI::App* app =
      program.add_subcommand("manual", "Print manual pages, and completions for shells");
  app->add_option("COMMAND", command_, "Whose page; without it the page of mrc itself");
  CLI::Option* shell =
      app->add_option("--completion", shell_, "The completion of this shell instead")
          ->check(CLI::IsMember({"bash", "zsh"}));
  app->add_option("--out", folder_, "Write all pages and completions below this folder")
      ->excludes(shell);
  app->footer(
      "What is installed comes with both already. Examples:\n"
      "  mrc manual lab | man -l -\n"
      "  source <(mrc manual --completion bash)\n"
      "  mrc manual --out build/manual");
  return app;
}

// The page of mrc names all commands; one of a command refers to it.
std::string page(const CommandText& program, const CommandText& command) {
  const bool whole = &program == &command;
  manual::PageInput input{MRC_VERSION, {}, whole};
  if (whole) {
    for (const CommandText& below : program.commands)
      input.also.push_back(manual::page_name(below));
  } else {
    input.also.push_back(manual::page_name(program));
  }
  return manual::man_page(command, input);
}

void write_text(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  write_file(file.string(), [&](std::ostream& out) { out << text; });
}

void ManualCommand::write_all(const CommandText& program) const {
  const fs::path folder = folder_;
  write_text(folder / "man1" / "mrc.1", page(program, program));
  for (const CommandText& command : program.commands)
    write_text(folder / "man1" / (manual::page_name(command) + ".1"), page(program, command));
  write_text(folder / "bash" / "mrc", manual::bash_completion(program));
  write_text(folder / "zsh" / "_mrc", manual::zsh_completion(program));
}

ExitCode ManualCommand::run() {
  const CommandText program = manual::describe(*program_);
  if (!folder_.empty()) {
    write_all(program);
  } else if (!shell_.empty()) {
    fmt::print("{}", shell_ == "bash" ? manual::bash_completion(program)
                                      : manual::zsh_completion(program));
  } else if (command_.empty()) {
    fmt::print("{}", page(program, program));
  } else {
    const auto found =
        std::find_if(program.commands.begin(), program.commands.end(),
                     [&](const CommandText& command) { return command.path.back() == command_; });
    if (found == program.commands.end())
      throw fabric::InputError("there is no command '" + command_ + "'");
    fmt::print("{}", page(program, *found));
  }
  return ExitCode::kOk;
}

}  // namespace

std::unique_ptr<Command> make_manual_command() { return std::make_unique<ManualCommand>(); }

}  // namespace mrc::tool
