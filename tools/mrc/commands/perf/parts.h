// What `mrc perf` measures, in two parts. A build may lack one of them, whose make function gives
// null then (cmake/MrcFew.cmake). That of <name> stands in <name>_part.cc.
#pragma once

#include <memory>

#include "exit_code.h"

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace mrc::tool::perf {

class Part {
 public:
  virtual ~Part() = default;

  // Adds its sub-commands to `mrc perf`. Option values live in this object.
  virtual void declare(CLI::App& perf) = 0;
  // Whether one of them was asked for; then run() does it.
  virtual bool parsed() const = 0;
  virtual ExitCode run() = 0;
};

std::unique_ptr<Part> make_write_part();
std::unique_ptr<Part> make_collective_part();

}  // namespace mrc::tool::perf
