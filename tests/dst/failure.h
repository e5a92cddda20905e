// How a checker says that the engine broke its contract: one exception that ends the seed.
#pragma once

#include <stdexcept>
#include <string>

namespace mrc::dst {

class CheckFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws CheckFailed with a printf-style reason.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace mrc::dst

// The reason is formatted only when the condition does not hold.
#define MRC_CHECK(condition, ...)    \
  do {                               \
    if (!(condition)) [[unlikely]]   \
      ::mrc::dst::fail(__VA_ARGS__); \
  } while (false)
