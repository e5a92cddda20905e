// Why a call failed that reports by -1 and errno.
#pragma once

#include <cerrno>

// 0 when it did not, and no errno at all when it reports in any other way.
inline int why(int result) {
  constexpr int kOtherConvention = -1'000;
  if (result == 0) return 0;
  return result == -1 ? errno : kOtherConvention;
}
