// Runs a parsed script against one fresh engine.
#pragma once

#include <string>

#include "script/script_parser.h"

namespace mrc::script {

struct RunResult {
  bool passed = true;
  unsigned line = 0;    // of the statement that failed
  std::string message;  // what was expected and what came instead
  std::string log;      // all packets, completions and events up to there, with their times
};

RunResult run_script(const Script& script);

}  // namespace mrc::script
