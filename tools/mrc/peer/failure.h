// How a measurement ends early: a sentence for a person and the exit code for a script.
#pragma once

#include <stdexcept>
#include <string>

#include "exit_code.h"

namespace mrc::tool {

class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& what, ExitCode code = ExitCode::kFailed)
      : std::runtime_error(what), code_(code) {}

  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

}  // namespace mrc::tool
