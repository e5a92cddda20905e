#include "nic/io/udp/udp_batch.h"

#include <cstring>

#include "nic/io/security.h"
#include "wire/codec.h"

namespace mrc::nic {
namespace {

constexpr std::size_t kMaxMessages = 64;
constexpr std::size_t kMaxPieces = 2048;
constexpr std::size_t kArenaBytes = 64 << 10;
constexpr std::size_t kSealedArenaBytes = 256 << 10;  // four full bursts, and in the second cache
// A payload up to this size is copied behind its headers, which costs less than a piece of its own.
constexpr std::size_t kCopiedPayload = wire::kMostAlwaysCovered;
constexpr std::size_t kMaxTrailer = 3 + wire::kIcrcLength;
constexpr std::size_t kMaxArenaUse = wire::kMaxTransportHeader + kCopiedPayload + kMaxTrailer;

}  // namespace

UdpBatch::UdpBatch(const wire::Dialect& dialect, bool seals)
    : dialect_(dialect),
      messages_(std::make_unique<UdpMessage[]>(kMaxMessages)),
      pieces_(std::make_unique<iovec[]>(kMaxPieces)),
      arena_bytes_(seals ? kSealedArenaBytes : kArenaBytes),
      arena_(std::make_unique_for_overwrite<std::byte[]>(arena_bytes_)) {}

void UdpBatch::clear() {
  message_count_ = 0;
  piece_count_ = 0;
  arena_used_ = 0;
}

bool UdpBatch::joins_last(const UdpFlow& flow, std::uint8_t traffic_byte, std::size_t bytes) const {
  if (message_count_ == 0) return false;
  const UdpMessage& last = messages_[message_count_ - 1];
  return last.open && last.plane == flow.plane && last.socket == flow.socket &&
         std::memcmp(&last.to.value, &flow.to.value, flow.to.length) == 0 &&
         last.traffic_byte == traffic_byte && bytes <= last.segment_bytes &&
         last.segments < kMaxSegments && last.total_bytes + bytes <= kMaxBurstBytes;
}

void UdpBatch::start_message(const UdpFlow& flow, std::uint8_t traffic_byte, std::size_t bytes) {
  UdpMessage& message = messages_[message_count_++];
  message.to = flow.to;
  message.plane = flow.plane;
  message.traffic_byte = traffic_byte;
  message.open = true;
  message.socket = flow.socket;
  message.segments = 0;
  message.segment_bytes = static_cast<std::uint32_t>(bytes);
  message.total_bytes = 0;
  message.first_piece = static_cast<std::uint32_t>(piece_count_);
  message.piece_count = 0;
}

void UdpBatch::add_piece(UdpMessage& message, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  // The kernel does not write through the pointer; iovec serves both directions.
  auto* const base = const_cast<std::byte*>(bytes.data());  // NOLINT
  if (message.piece_count > 0) {
    iovec& last = pieces_[piece_count_ - 1];
    if (static_cast<std::byte*>(last.iov_base) + last.iov_len == base) {
      last.iov_len += bytes.size();
      return;
    }
  }
  pieces_[piece_count_++] = {.iov_base = base, .iov_len = bytes.size()};
  ++message.piece_count;
}

bool UdpBatch::append(UdpFlow& flow, std::uint8_t traffic_byte, const wire::Packet& packet,
                      wire::PayloadPieces payload, const UdpPacketRules& rules) {
  if (flow.sealer != nullptr) return append_sealed(flow, traffic_byte, packet, payload, rules);
  const std::size_t payload_length = wire::payload_bytes(payload);
  const std::uint8_t pad = wire::pad_length(payload_length);
  const std::size_t transport_length = header_length(packet) + payload_length + pad;
  const std::size_t bytes = transport_length + wire::kIcrcLength;
  const std::size_t new_pieces = payload.size() + 2;
  if (arena_used_ + kMaxArenaUse > arena_bytes_ || piece_count_ + new_pieces > kMaxPieces ||
      new_pieces > kMaxMessagePieces) {
    return false;
  }
  const bool joins = rules.may_join && joins_last(flow, traffic_byte, bytes) &&
                     messages_[message_count_ - 1].piece_count + new_pieces <= kMaxMessagePieces;
  if (!joins) {
    if (message_count_ == kMaxMessages) return false;
    start_message(flow, traffic_byte, bytes);
  }
  UdpMessage& message = messages_[message_count_ - 1];

  std::byte* const header = arena_.get() + arena_used_;
  wire::Packet padded = packet;
  padded.bth.pad = pad;
  padded.bth.takes_header_check = rules.takes_header_check;
  const std::size_t header_bytes =
      wire::build_transport(padded, {header, wire::kMaxTransportHeader}, dialect_);
  std::size_t used = header_bytes;
  wire::Icrc icrc = flow.prefixes.begin(flow.addresses, transport_length);
  const bool copied = payload_length <= kCopiedPayload;
  if (copied) {
    for (const auto piece : payload) {
      if (!piece.empty()) std::memcpy(header + used, piece.data(), piece.size());
      used += piece.size();
    }
  } else {
    icrc.add_transport({header, header_bytes});
    add_piece(message, {header, header_bytes});
    for (const auto piece : payload) {
      if (!rules.header_check) icrc.add(piece);
      add_piece(message, piece);
    }
  }
  std::byte* const trailer = header + used;
  std::memset(trailer, 0, pad);
  const bool covered = copied || !rules.header_check;
  if (copied) {
    icrc.add_transport({header, used + pad});
  } else if (covered) {
    icrc.add({trailer, pad});
  }
  wire::store_icrc(covered ? icrc.value() : icrc.header_check(),
                   {trailer + pad, wire::kIcrcLength});
  used += pad + wire::kIcrcLength;
  if (copied) {
    add_piece(message, {header, used});
  } else {
    add_piece(message, {trailer, used - header_bytes});
  }
  arena_used_ += used;
  ++message.segments;
  message.total_bytes += static_cast<std::uint32_t>(bytes);
  message.open = bytes == message.segment_bytes;
  return true;
}

// --- Sealed ---

bool UdpBatch::append_sealed(UdpFlow& flow, std::uint8_t traffic_byte, const wire::Packet& packet,
                             wire::PayloadPieces payload, const UdpPacketRules& rules) {
  const std::size_t bytes = sealed_bytes(packet, wire::payload_bytes(payload));
  if (arena_used_ + bytes > arena_bytes_ || piece_count_ == kMaxPieces) return false;
  const bool joins = rules.may_join && joins_last(flow, traffic_byte, bytes);
  if (!joins && message_count_ == kMaxMessages) return false;

  const std::span<std::byte> out(arena_.get() + arena_used_, bytes);
  if (seal_packet(*flow.sealer, dialect_, packet, payload, out) != bytes) return false;
  if (!joins) start_message(flow, traffic_byte, bytes);
  UdpMessage& message = messages_[message_count_ - 1];
  add_piece(message, out);
  arena_used_ += bytes;
  ++message.segments;
  message.total_bytes += static_cast<std::uint32_t>(bytes);
  message.open = bytes == message.segment_bytes;
  return true;
}

// --- Runs ---

bool UdpBatch::has_room_behind(const RunState& run) const {
  const UdpMessage& message = messages_[message_count_ - 1];
  return message.open && message.segments < kMaxSegments &&
         message.total_bytes + run.packet_bytes <= kMaxBurstBytes &&
         message.piece_count + 2 <= kMaxMessagePieces && piece_count_ + 2 <= kMaxPieces &&
         arena_used_ + run.header_bytes + wire::kIcrcLength <= arena_bytes_;
}

// The ICRC of the packet before and the headers of this one lie side by side, so that a packet
// takes two pieces.
void UdpBatch::append_behind(const RunState& run, const std::byte* header_before,
                             const wire::Packet& packet, std::span<const std::byte> payload) {
  UdpMessage& message = messages_[message_count_ - 1];
  std::byte* const header = arena_.get() + arena_used_;
  std::memcpy(header, header_before, run.header_bytes);
  wire::move_header({header, run.header_bytes}, packet);
  wire::Icrc icrc = run.icrc;
  icrc.add_transport({header, run.header_bytes});
  if (!run.header_check) icrc.add(payload);
  std::byte* const trailer = header + run.header_bytes;
  wire::store_icrc(run.header_check ? icrc.header_check() : icrc.value(),
                   {trailer, wire::kIcrcLength});
  add_piece(message, {header, run.header_bytes});
  add_piece(message, payload);
  add_piece(message, {trailer, wire::kIcrcLength});
  arena_used_ += run.header_bytes + wire::kIcrcLength;
  ++message.segments;
  message.total_bytes += static_cast<std::uint32_t>(run.packet_bytes);
}

unsigned UdpBatch::append_run(UdpFlow& flow, std::uint8_t traffic_byte, const wire::Packet& first,
                              std::span<const std::byte> payload, unsigned count,
                              const UdpPacketRules& rules) {
  const std::size_t each = payload.size() / count;
  const std::size_t header_bytes = header_length(first);
  const std::size_t transport_length = header_bytes + each;
  const bool in_place =
      flow.sealer == nullptr && each > kCopiedPayload && wire::pad_length(each) == 0;
  const RunState run{.icrc = flow.prefixes.begin(flow.addresses, transport_length),
                     .header_bytes = header_bytes,
                     .packet_bytes = transport_length + wire::kIcrcLength,
                     .header_check = rules.header_check};
  wire::Packet packet = first;
  const std::byte* header = nullptr;  // of the packet before, in the message that is open
  for (unsigned i = 0; i < count; ++i) {
    const std::span<const std::byte> piece = payload.subspan(i * each, each);
    const std::byte* const here = arena_.get() + arena_used_;
    if (header != nullptr && in_place && rules.may_join && has_room_behind(run)) {
      append_behind(run, header, packet, piece);
    } else if (!append(flow, traffic_byte, packet, {&piece, 1}, rules)) {
      return i;
    }
    header = here;
    wire::move_on(packet, 1, static_cast<std::uint32_t>(each));
  }
  return count;
}

}  // namespace mrc::nic
