#include "core/work.h"

namespace mrc::core {

const char* completion_status_name(CompletionStatus status) {
  using enum CompletionStatus;
  switch (status) {
    case kSuccess:
      return "success";
    case kFlushed:
      return "flushed";
    case kRetryExceeded:
      return "retry_exceeded";
    case kRemoteAccess:
      return "remote_access";
    case kRemoteInvalidRequest:
      return "remote_invalid_request";
    case kRemoteOperation:
      return "remote_operation";
    case kImmediateLimit:
      return "immediate_limit";
    case kReceiveMissing:
      return "receive_missing";
    case kLocalProtection:
      return "local_protection";
  }
  return "unknown";
}

}  // namespace mrc::core
