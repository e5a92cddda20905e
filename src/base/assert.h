// Assertions for programmer errors. They stay on in release builds.
//
// Never assert on anything a peer can choose: bytes from the network get a DropReason and a
// counter.
#pragma once

#include <cstdlib>

namespace mrc {

[[noreturn]] inline void assertion_failed() { std::abort(); }

}  // namespace mrc

#define MRC_ASSERT(condition)      \
  do {                             \
    if (!(condition)) [[unlikely]] \
      ::mrc::assertion_failed();   \
  } while (false)
