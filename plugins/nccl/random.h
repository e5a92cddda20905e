#pragma once

#include <cstdint>

namespace mrc::nccl {

// A number that nobody can guess and that is not 0.
std::uint64_t random_number();

}  // namespace mrc::nccl
