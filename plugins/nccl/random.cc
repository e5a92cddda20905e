#include "random.h"

#include <sys/random.h>

#include <random>

namespace mrc::nccl {

std::uint64_t random_number() {
  std::uint64_t number = 0;
  while (number == 0) {
    if (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
      number = (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  }
  return number;
}

}  // namespace mrc::nccl
