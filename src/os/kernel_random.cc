#include "os/kernel_random.h"

#include <sys/random.h>

#include <cerrno>

#include "base/assert.h"

namespace mrc::os {

std::uint32_t KernelRandom::next32() {
  std::uint32_t value = 0;
  for (;;) {
    const ssize_t got = getrandom(&value, sizeof value, 0);
    if (got == static_cast<ssize_t>(sizeof value)) return value;
    // So small a request fails only when a signal comes before the generator is ready.
    MRC_ASSERT(got > 0 || errno == EINTR);
  }
}

}  // namespace mrc::os
