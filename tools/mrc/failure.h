// How a measurement ends early: as the ranks of the collectives do, whose exit codes are ours.
#pragma once

#include "collective/failure.h"
#include "exit_code.h"

namespace mrc::tool {

using collective::Failure;
using collective::FailureKind;

constexpr bool is_same_number(FailureKind kind, ExitCode code) {
  return static_cast<int>(kind) == static_cast<int>(code);
}
static_assert(is_same_number(FailureKind::kFailed, ExitCode::kFailed) &&
              is_same_number(FailureKind::kUsage, ExitCode::kUsage) &&
              is_same_number(FailureKind::kWrongData, ExitCode::kWrongData) &&
              is_same_number(FailureKind::kTimeout, ExitCode::kTimeout) &&
              is_same_number(FailureKind::kInterrupted, ExitCode::kInterrupted));

inline ExitCode exit_code_of(const Failure& failure) {
  return static_cast<ExitCode>(failure.kind());
}

}  // namespace mrc::tool
