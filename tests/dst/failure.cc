#include "dst/failure.h"

#include <cstdarg>
#include <cstdio>

namespace mrc::dst {

void fail(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  throw CheckFailed(text);
}

}  // namespace mrc::dst
