// How a group of ranks, or one of its connections, ends before its time: a sentence for a person,
// and a number for whoever started the process.
#pragma once

#include <stdexcept>
#include <string>

namespace mrc::collective {

// The values are exit codes: a rank that fails ends with them, and launchers and scripts rely on
// these numbers.
enum class FailureKind : int {
  kFailed = 1,
  kUsage = 2,
  kWrongData = 3,
  kTimeout = 4,
  kInterrupted = 130,  // Ctrl-C
};

class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& what, FailureKind kind = FailureKind::kFailed)
      : std::runtime_error(what), kind_(kind) {}

  FailureKind kind() const { return kind_; }

 private:
  FailureKind kind_;
};

}  // namespace mrc::collective
