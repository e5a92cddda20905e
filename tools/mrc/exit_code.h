// How `mrc` ends, the same for all sub-commands; scripts rely on these numbers.
#pragma once

namespace mrc::tool {

enum class ExitCode : int {
  kOk = 0,
  kFailed = 1,
  kUsage = 2,
  kWrongData = 3,
  kTimeout = 4,
  kSkipped = 77,       // what was asked for cannot be done on this machine
  kInterrupted = 130,  // Ctrl-C; what was measured until then has been shown
};

inline constexpr const char* kExitCodesHelp =
    "Exit codes: 0 ok, 1 failed, 2 usage, 3 data wrong, 4 timeout, 77 cannot be done here,\n"
    "130 interrupted (what was measured until then is shown).";

}  // namespace mrc::tool
