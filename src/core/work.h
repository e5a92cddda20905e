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
  bool signaled = true;    // unsignaled requests complete silently unless they fail
  bool solicited = false;  // the peer's completion wakes those who wait for such ones only
  // A send: the data lands in the receive that the message uses up at the peer, and
  // `remote_address` and `remote_key` mean nothing. Between queue pairs that allow it only; see
  // QpConfig::allow_sends.
  bool into_receive = false;

  bool uses_receive() const { return with_immediate || into_receive; }
};

// Sends travel as writes with an immediate whose key is one of these two and whose address is the
// offset in the message. No region ever gets such a key.
inline constexpr Rkey kSendKey{0xFFFF'FFFE};
inline constexpr Rkey kSendImmediateKey{0xFFFF'FFFF};  // and the immediate is the program's
constexpr bool is_send_key(Rkey key) { return key == kSendKey || key == kSendImmediateKey; }

// Room for one immediate, and for a send of up to `capacity` bytes. The data of writes does not
// land here.
struct ReceiveRequest {
  std::uint64_t id = 0;
  std::uint32_t capacity = 0;
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
  kLocalProtection,       // the program's own memory for this request is gone
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
  // Receive completions: the peer sent (the data is in the receive), and gave an immediate.
  bool into_receive = false;
  bool has_immediate = false;
  bool solicited = false;  // the peer asked for an event
};

}  // namespace mrc::core
