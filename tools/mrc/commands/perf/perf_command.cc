// mrc perf: how fast writes are between two processes or hosts, and collectives of many, over the C
// API.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "command.h"
#include "commands/perf/parts.h"

namespace mrc::tool {
namespace {

class PerfCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  std::vector<std::unique_ptr<perf::Part>> parts_;
};

CLI::App* PerfCommand::declare(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "perf", "Measure writes between two processes or hosts, and collectives of many");
  bool whole = true;
  for (const auto make : {perf::make_write_part, perf::make_collective_part}) {
    if (std::unique_ptr<perf::Part> part = make()) {
      part->declare(*app);
      parts_.push_back(std::move(part));
    } else {
      whole = false;
    }
  }
  app->require_subcommand(whole ? 1 : 0, 1);
  if (!whole) app->allow_extras();  // run() says where the rest is
  app->footer(
      "Start the server first, without a host, then the client with the server's name:\n"
      "  mrc perf write_bw            mrc perf write_bw -s 1M -D 5 SERVER\n"
      "The client's options count for both sides. Collectives: see mrc perf allreduce --help.\n" +
      std::string(kExitCodesHelp));
  return app;
}

ExitCode PerfCommand::run() {
  for (const auto& part : parts_) {
    if (part->parsed()) return part->run();
  }
  fmt::print(stderr, "mrc perf: this build has only a part of it, {}\n", kWhereEverythingIs);
  return ExitCode::kUsage;
}

}  // namespace

std::unique_ptr<Command> make_perf_command() { return std::make_unique<PerfCommand>(); }

}  // namespace mrc::tool
