// From results inside to errno values outside.
#pragma once

#include <cerrno>

#include "base/result.h"

namespace mrc::os {

constexpr int errno_of(const Status& status) {
  switch (status.code()) {
    case ErrorCode::kOk:
      return 0;
    case ErrorCode::kNotFound:
      return ENOENT;
    case ErrorCode::kAlreadyExists:
      return EEXIST;
    case ErrorCode::kBusy:
      return EBUSY;
    case ErrorCode::kNoSpace:
      return ENOMEM;
    case ErrorCode::kTooLong:
      return E2BIG;
    case ErrorCode::kUnsupported:
      return EOPNOTSUPP;
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kWrongState:
      break;
  }
  return EINVAL;
}

// Why a call of a C interface failed that reports by -1 and errno, or by the errno value itself;
// 0 = it did not fail.
inline int errno_of(int result) { return result == -1 ? errno : result; }

}  // namespace mrc::os
