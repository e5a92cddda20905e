// Tells a process from its children, for a load per question.
#pragma once

#include <cstdint>

namespace mrc::seal {

// The same number as long as this is the same process, another one in every child: the kernel wipes
// the page it stands on when the process is copied, also by a bare clone() that runs no handlers.
// Where it cannot, handlers of fork() must do.
[[nodiscard]] std::uint64_t fork_generation();

}  // namespace mrc::seal
