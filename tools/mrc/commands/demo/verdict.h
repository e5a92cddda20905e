// What a demo has shown: for people and for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "commands/demo/drill.h"
#include "commands/demo/options.h"
#include "exit_code.h"
#include "terminal.h"

namespace mrc::tool::demo {

struct Verdict {
  std::vector<std::string> undisturbed;  // losses
  DrillResult mrc;
  std::optional<DrillResult> single_path;
  double seconds = 0;

  bool losses_are_equal() const { return mrc.losses == undisturbed; }
  // Only MRC is judged; the other transport is there to compare with.
  ExitCode exit_code() const;
};

void print_text(const Verdict& verdict, const Options& options, const Terminal& out);
void print_json(const Verdict& verdict, const Options& options);

}  // namespace mrc::tool::demo
