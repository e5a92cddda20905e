#include "messages.h"

#include <algorithm>
#include <cstring>

namespace mrc::nccl {
namespace {

constexpr std::uint32_t kHandleMagic = 0x4843'524d;   // "MRCH"
constexpr std::uint32_t kMessageMagic = 0x4d43'524d;  // "MRCM"
constexpr std::uint32_t kMaxQpNumber = 0xff'ffff;

// Writes and reads fields one behind the other. Room is a matter of the layouts below, which are
// fixed; the assertions at their ends hold them to it.
class Writer {
 public:
  explicit Writer(std::byte* to) : to_(to) {}

  template <typename Integer>
  void put(Integer value) {
    for (std::size_t i = 0; i < sizeof value; ++i)
      to_[at_++] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
  }
  void put(std::span<const std::uint8_t> bytes) {
    std::memcpy(to_ + at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  std::size_t at() const { return at_; }

 private:
  std::byte* to_;
  std::size_t at_ = 0;
};

class Reader {
 public:
  explicit Reader(const std::byte* from) : from_(from) {}

  template <typename Integer>
  Integer get() {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(Integer); ++i)
      value |= static_cast<std::uint64_t>(from_[at_++]) << (8 * i);
    return static_cast<Integer>(value);
  }
  template <std::size_t kSize>
  std::array<std::uint8_t, kSize> bytes() {
    std::array<std::uint8_t, kSize> out;
    std::memcpy(out.data(), from_ + at_, kSize);
    at_ += kSize;
    return out;
  }

 private:
  const std::byte* from_;
  std::size_t at_ = 0;
};

bool printable(char c) { return c >= ' ' && c <= '~'; }

}  // namespace

void encode(const Handle& handle, std::span<std::byte, kHandleBytes> out) {
  std::fill(out.begin(), out.end(), std::byte{0});
  const std::size_t count = std::min(handle.addresses.size(), Handle::kMaxAddresses);
  Writer writer(out.data());
  writer.put(kHandleMagic);
  writer.put(kProtocolVersion);
  writer.put(handle.port);
  writer.put(handle.cookie);
  writer.put(handle.connect_token);
  writer.put(static_cast<std::uint64_t>(count));
  for (std::size_t i = 0; i < count; ++i)
    writer.put(std::span<const std::uint8_t>(handle.addresses[i].bytes));
  static_assert(32 + Handle::kMaxAddresses * 16 <= kHandleBytes);
}

std::optional<Handle> decode_handle(std::span<const std::byte, kHandleBytes> in) {
  Reader reader(in.data());
  if (reader.get<std::uint32_t>() != kHandleMagic) return std::nullopt;
  if (reader.get<std::uint16_t>() != kProtocolVersion) return std::nullopt;
  Handle handle;
  handle.port = reader.get<std::uint16_t>();
  handle.cookie = reader.get<std::uint64_t>();
  handle.connect_token = reader.get<std::uint64_t>();
  const auto count = reader.get<std::uint64_t>();
  if (handle.port == 0 || count == 0 || count > Handle::kMaxAddresses) return std::nullopt;
  for (std::uint64_t i = 0; i < count; ++i)
    handle.addresses.push_back({reader.bytes<16>()});
  return handle;
}

MessageBytes encode(const Message& message) {
  MessageBytes out{};
  Writer writer(out.data());
  writer.put(kMessageMagic);
  writer.put(kProtocolVersion);
  writer.put(static_cast<std::uint8_t>(message.kind));
  writer.put(message.path_mtu);
  writer.put(message.cookie);
  writer.put(std::span<const std::uint8_t>(message.gid));
  writer.put(message.qp_number);
  writer.put(message.first_psn);
  writer.put(message.ring_address);
  writer.put(message.messages_received);
  writer.put(message.ring_key);
  writer.put(static_cast<std::uint32_t>(message.plane_count));
  std::array<std::uint8_t, Message::kNameBytes> name{};
  const std::size_t length = std::min(message.name.size(), name.size() - 1);
  std::copy_n(message.name.begin(), length, name.begin());
  writer.put(std::span<const std::uint8_t>(name));
  writer.put(message.security);
  writer.put(message.immediates);
  writer.put(static_cast<std::uint16_t>(message.window));
  writer.put(message.capabilities);
  writer.put(message.dialect);
  static_assert(16 + 16 + 24 + 8 + Message::kNameBytes + 8 + 8 + 8 == Message::kBytes);
  return out;
}

std::optional<Message> decode_message(std::span<const std::byte, Message::kBytes> in) {
  Reader reader(in.data());
  if (reader.get<std::uint32_t>() != kMessageMagic) return std::nullopt;
  if (reader.get<std::uint16_t>() != kProtocolVersion) return std::nullopt;
  Message message;
  const auto kind = reader.get<std::uint8_t>();
  if (kind < static_cast<std::uint8_t>(MessageKind::kHello) ||
      kind > static_cast<std::uint8_t>(MessageKind::kBye)) {
    return std::nullopt;
  }
  message.kind = static_cast<MessageKind>(kind);
  message.path_mtu = reader.get<std::uint8_t>();
  message.cookie = reader.get<std::uint64_t>();
  message.gid = reader.bytes<16>();
  message.qp_number = reader.get<std::uint32_t>();
  message.first_psn = reader.get<std::uint32_t>();
  message.ring_address = reader.get<std::uint64_t>();
  message.messages_received = reader.get<std::uint64_t>();
  message.ring_key = reader.get<std::uint32_t>();
  const auto planes = reader.get<std::uint32_t>();
  if (message.qp_number > kMaxQpNumber || message.first_psn > kMaxQpNumber || planes > 32 ||
      message.path_mtu > 5) {
    return std::nullopt;
  }
  message.plane_count = static_cast<std::uint8_t>(planes);
  for (const std::uint8_t byte : reader.bytes<Message::kNameBytes>()) {
    const char c = static_cast<char>(byte);
    if (c == '\0') break;
    message.name += printable(c) ? c : '?';
  }
  // Versions that did not say had eight more characters for the name.
  message.security = reader.get<std::uint64_t>();
  if ((message.security >> 56 & 0x80) == 0) message.security = 0;
  message.immediates = reader.get<std::uint16_t>();
  const auto window = reader.get<std::uint16_t>();
  if (window > UINT8_MAX) return std::nullopt;
  message.window = static_cast<std::uint8_t>(window);
  message.capabilities = reader.get<std::uint32_t>();
  message.dialect = reader.get<std::uint64_t>();
  return message;
}

const char* explain_bad_message(std::span<const std::byte, Message::kBytes> in) {
  Reader reader(in.data());
  if (reader.get<std::uint32_t>() != kMessageMagic) return "it does not speak our protocol";
  if (reader.get<std::uint16_t>() != kProtocolVersion)
    return "it has another version of this plug-in; install the same one on all hosts";
  return "it sent a broken message";
}

}  // namespace mrc::nccl
