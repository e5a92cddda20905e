// Counts what the program's operator new hands out. It is replaced in counting_new.cc; one thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mrc::test {

// Since the program started.
std::uint64_t allocation_count();
// Requested and not yet released, without what the allocator itself adds.
std::size_t live_bytes();

}  // namespace mrc::test
