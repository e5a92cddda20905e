// Why a call of the MRC API failed, whichever of its conventions it has: -1 with errno, or the
// errno value itself. 0 = it did not fail.
#pragma once

#include <cerrno>

namespace mrc::tool {

inline int errno_of(int result) { return result == -1 ? errno : result; }

}  // namespace mrc::tool
