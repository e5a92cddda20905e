// What two ends of a connection tell each other outside the data path, and the listener's handle.
//
// Both have a magic number and a version and are little-endian at fixed offsets. Everything that
// arrives is checked: a decoder gives nothing for bytes that are not exactly right.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "address.h"
#include "nccl_net.h"

namespace mrc::nccl {

inline constexpr std::uint16_t kProtocolVersion = 1;

// What NCCL carries from the listening to the connecting side. `connect_token` is 0 there; the
// connecting side keeps its own number in it between calls (NCCL hands in the same buffer again).
struct Handle {
  static constexpr std::size_t kMaxAddresses = 5;

  std::uint64_t cookie = 0;  // whoever connects must know it
  std::uint16_t port = 0;    // TCP
  std::uint64_t connect_token = 0;
  std::vector<Address> addresses;
};
void encode(const Handle& handle, std::span<std::byte, kHandleBytes> out);
std::optional<Handle> decode_handle(std::span<const std::byte, kHandleBytes> in);

// Connecting side: hello, ready. Accepting side: welcome or refusal. Either, before it closes: bye.
enum class MessageKind : std::uint8_t { kHello = 1, kWelcome, kReady, kRefusal, kBye };

struct Message {
  static constexpr std::size_t kBytes = 128;
  static constexpr std::size_t kNameBytes = 40;  // at least one of them 0

  MessageKind kind = MessageKind::kHello;
  std::uint8_t path_mtu = 0;  // as ibv_mtu counts
  std::uint8_t plane_count = 0;
  std::uint64_t cookie = 0;
  std::array<std::uint8_t, 16> gid{};
  std::uint32_t qp_number = 0;
  std::uint32_t first_psn = 0;
  std::uint64_t ring_address = 0;  // of the memory that the peer writes credits or sizes to
  std::uint32_t ring_key = 0;
  // What this end can take, in the API's units; all 0 from versions that did not say.
  std::uint8_t window = 0;         // packets out of order (MPR)
  std::uint16_t immediates = 0;    // under way to it
  std::uint32_t capabilities = 0;  // enum mrc_device_cap; bits that we do not know are no fault
  std::uint64_t dialect = 0;       // openmrc_dialect.h
  std::uint64_t security = 0;      // openmrc_security.h; 0 from versions that did not say
  std::uint64_t messages_received = 0;  // bye: whole messages that reached the sender of this
  std::string name;                     // host and device, for logs; printable
};
using MessageBytes = std::array<std::byte, Message::kBytes>;
MessageBytes encode(const Message& message);
std::optional<Message> decode_message(std::span<const std::byte, Message::kBytes> in);
// Why decode_message() gave nothing, for people.
const char* explain_bad_message(std::span<const std::byte, Message::kBytes> in);

}  // namespace mrc::nccl
