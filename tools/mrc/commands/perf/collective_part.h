// The collectives of `mrc perf` on the command line.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "commands/perf/collective_run.h"
#include "commands/perf/parts.h"

namespace mrc::tool::perf {

class CollectiveCommands final : public Part {
 public:
  CollectiveCommands();
  ~CollectiveCommands() override;
  CollectiveCommands(const CollectiveCommands&) = delete;
  CollectiveCommands& operator=(const CollectiveCommands&) = delete;

  void declare(CLI::App& perf) override;
  bool parsed() const override;
  ExitCode run() override;

 private:
  struct Given;

  void declare_one(CLI::App& perf, Operation operation, const char* help);
  static void declare_sizes(CLI::App& app, Given& given);
  static void declare_place(CLI::App& app, Given& given);
  static CollectiveOptions options_of(const Given& given);
  static ExitCode run_rank(const Given& given);
  static ExitCode run_in_lab(const Given& given);
  static std::vector<std::string> words_for_ranks(const Given& given);

  std::vector<std::unique_ptr<Given>> given_;
};

}  // namespace mrc::tool::perf
