#include "log.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "openmrc_log.h"

namespace mrc::nccl {
namespace {

constexpr std::size_t kMaxLine = 1024;

struct State {
  std::atomic<Logger> logger{nullptr};
  std::atomic<bool> settings_told{false};
};
constinit State state;

[[gnu::format(printf, 2, 0)]] void write_line(LogLevel level, const char* format,
                                              std::va_list arguments) {
  const Logger logger = state.logger.load(std::memory_order_acquire);
  if (logger == nullptr) return;
  std::array<char, kMaxLine> line;
  std::vsnprintf(line.data(), line.size(), format, arguments);
  logger(level, kLogInit | kLogNet, "nccl-net-openmrc", 0, "NET/OpenMRC : %s", line.data());
}

// The library says why a device cannot be used; only this puts it where NCCL's users look.
void hear_library(openmrc_log_level level, const char* message) {
  if (level <= OPENMRC_LOG_WARN) {
    log_warning("%s", message);
  } else {
    log_info("%s", message);
  }
}

}  // namespace

void set_logger(Logger logger) {
  state.logger.store(logger, std::memory_order_release);
  openmrc_set_log_function(hear_library);
}

void log_warning(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  write_line(LogLevel::kWarn, format, arguments);
  va_end(arguments);
}

void log_info(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  write_line(LogLevel::kInfo, format, arguments);
  va_end(arguments);
}

void log_settings_once() {
  if (state.settings_told.exchange(true)) return;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const char* const equals = std::strchr(*entry, '=');
    if (std::strncmp(*entry, "MRC_", 4) != 0 || equals == nullptr) continue;
    log_info("%.*s set by environment to %s", static_cast<int>(equals - *entry), *entry,
             equals + 1);
  }
}

}  // namespace mrc::nccl
