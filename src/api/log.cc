#include "api/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "api/verbs_types.h"
#include "openmrc_log.h"
#include "os/environment.h"

namespace mrc::api {
namespace {

constexpr std::array<const char*, 5> kNames{"off", "error", "warn", "info", "debug"};
constexpr std::size_t kMaxLine = 2048;

constinit std::atomic<openmrc_log_function> listener{nullptr};
static_assert(static_cast<int>(LogLevel::kError) == OPENMRC_LOG_ERROR &&
              static_cast<int>(LogLevel::kDebug) == OPENMRC_LOG_DEBUG);

struct Log {
  LogLevel level = LogLevel::kWarn;
  int fd = STDERR_FILENO;
};

LogLevel level_from_environment() {
  const char* text = os::environment("MRC_LOG_LEVEL");
  if (text == nullptr) return LogLevel::kWarn;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (std::strcmp(text, kNames.at(i)) == 0) return static_cast<LogLevel>(i);
  }
  return LogLevel::kWarn;
}

int file_from_environment() {
  const char* pattern = os::environment("MRC_LOG_FILE");
  if (pattern == nullptr || *pattern == '\0') return STDERR_FILENO;
  const int fd = open(log_file_name(pattern).c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC,
                      S_IRUSR | S_IWUSR | S_IRGRP);
  return fd < 0 ? STDERR_FILENO : fd;
}

const Log& the_log() {
  static const Log kLog = [] {
    Log made{.level = level_from_environment()};
    try {
      made.fd = file_from_environment();
    } catch (const std::bad_alloc&) {
      made.fd = STDERR_FILENO;
    }
    return made;
  }();
  return kLog;
}

}  // namespace

std::string log_file_name(const std::string& pattern) {
  std::string name;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'h') {
      std::array<char, 256> host{};
      if (gethostname(host.data(), host.size() - 1) != 0) host.front() = '?';
      name += host.data();
    } else if (next == 'p') {
      name += std::to_string(getpid());
    } else if (next == '%') {
      name += '%';
    } else {
      name += pattern[i];
      continue;
    }
    ++i;
  }
  return name;
}

bool logs(LogLevel level) { return level <= the_log().level; }

void log(LogLevel level, const char* format, ...) {
  if (!logs(level)) return;
  const int saved_errno = errno;
  std::array<char, kMaxLine> line;
  int length = std::snprintf(line.data(), line.size(), "mrc[%d] %s: ", getpid(),
                             kNames.at(static_cast<std::size_t>(level)));
  std::va_list arguments;
  va_start(arguments, format);
  const auto room = line.size() - static_cast<std::size_t>(length) - 1;
  const int text = std::vsnprintf(line.data() + length, room, format, arguments);
  va_end(arguments);
  const int head = length;
  length += std::clamp(text, 0, static_cast<int>(room) - 1);
  if (const openmrc_log_function listens = listener.load(std::memory_order_acquire)) {
    line.at(static_cast<std::size_t>(length)) = '\0';
    listens(static_cast<openmrc_log_level>(level), line.data() + head);
  }
  line.at(static_cast<std::size_t>(length)) = '\n';
  const ssize_t written = write(the_log().fd, line.data(), static_cast<std::size_t>(length) + 1);
  static_cast<void>(written);
  errno = saved_errno;
}

}  // namespace mrc::api

MRC_API_EXPORT void openmrc_set_log_function(openmrc_log_function function) {
  mrc::api::listener.store(function, std::memory_order_release);
}
