// What programs hand to a queue pair and what they get back.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace mrc::core {

inline constexpr std::uint32_t kMaxMessageBytes = 0x8000'0000;  // 2 GiB

// An RDMA write, with or without an immediate. `local_address` is opaque to the core: it comes
// back, advanced by the packet's offset, in every TxPacket of the message.
struct SendRequest {
  std::uint64_t id = 0;
  std::uint64_t local_address = 0;
  std::uint32_t length = 0;
  std::uint64_t remote_address = 0;
  Rkey remote_key{};
  bool with_immediate = false;
  std::uint32_t immediate = 0;
  bool signaled = true;  // unsignaled requests complete silently unless they fail
};

// Room for one immediate. The data of the write does not land here.
struct ReceiveRequest {
  std::uint64_t id = 0;
};

enum class CompletionStatus : std::uint8_t {
  kSuccess,
  kFlushed,               // the queue pair failed or was reset before this request was done
  kRetryExceeded,         // the peer did not answer
  kRemoteAccess,          // the peer refused the key, right or range
  kRemoteInvalidRequest,  // the peer found our packets contradictory
  kRemoteOperation,       // the peer's queue pair failed
  kImmediateLimit,        // more immediates in flight than the peer can stash
  kReceiveMissing,        // the peer had no receive posted for an immediate
};
const char* completion_status_name(CompletionStatus status);

enum class CompletionKind : std::uint8_t { kSend, kReceive };

struct Completion {
  QpNumber qp{};
  CompletionKind kind = CompletionKind::kSend;
  CompletionStatus status = CompletionStatus::kSuccess;
  std::uint64_t id = 0;
  std::uint32_t length = 0;     // bytes of the message
  std::uint32_t immediate = 0;  // receive completions only
};

}  // namespace mrc::core
