// Messages for people, to stderr or a file.
//
// MRC_LOG_LEVEL is one of off, error, warn, info, debug; without it warnings and errors are shown.
// MRC_LOG_FILE names a file to append to instead of stderr; in it %h is the host's name, %p the
// process number and %% a percent sign. Any thread; one message is one line and one write. A
// program may have them handed to it as well (openmrc_log.h).
#pragma once

#include <string>

namespace mrc::api {

enum class LogLevel : int { kOff, kError, kWarn, kInfo, kDebug };

bool logs(LogLevel level);
[[gnu::format(printf, 2, 3)]] void log(LogLevel level, const char* format, ...);

// For tests and `mrc info`: the name with its placeholders filled in.
std::string log_file_name(const std::string& pattern);

}  // namespace mrc::api
