#include "sim/stored_body.h"

#include <cstring>
#include <type_traits>

#include "base/assert.h"
#include "sim/host_memory.h"

namespace mrc::sim {
namespace {

enum Flag : std::uint8_t {
  kSolicited = 1,
  kMigration = 2,
  kAckRequest = 4,
  kRetransmission = 8,
  kHasTimestamp = 16,
  kPadShift = 6,
};

constexpr std::uint16_t kPartitionKey = wire::Bth{}.partition_key;

std::array<std::uint8_t, 3> to_24_bits(std::uint32_t value) {
  return {static_cast<std::uint8_t>(value), static_cast<std::uint8_t>(value >> 8),
          static_cast<std::uint8_t>(value >> 16)};
}
std::uint32_t from_24_bits(const std::array<std::uint8_t, 3>& bytes) {
  return bytes[0] | std::uint32_t{bytes[1]} << 8 | std::uint32_t{bytes[2]} << 16;
}

std::uint8_t flag_if(bool condition, Flag flag) {
  return condition ? static_cast<std::uint8_t>(flag) : std::uint8_t{0};
}

}  // namespace

StoredBth::StoredBth(const wire::Bth& bth)
    : opcode_(static_cast<std::uint8_t>(bth.opcode)),
      flags_(static_cast<std::uint8_t>(
          flag_if(bth.solicited, kSolicited) | flag_if(bth.migration, kMigration) |
          flag_if(bth.ack_request, kAckRequest) | flag_if(bth.retransmission, kRetransmission) |
          flag_if(bth.has_timestamp, kHasTimestamp) | bth.pad << kPadShift)),
      destination_(to_24_bits(static_cast<std::uint32_t>(bth.destination))),
      psn_(to_24_bits(bth.psn.value())) {
  MRC_ASSERT(bth.partition_key == kPartitionKey);
}

wire::Bth StoredBth::expand() const {
  return {.opcode = static_cast<wire::Opcode>(opcode_),
          .solicited = (flags_ & kSolicited) != 0,
          .migration = (flags_ & kMigration) != 0,
          .pad = static_cast<std::uint8_t>(flags_ >> kPadShift),
          .ack_request = (flags_ & kAckRequest) != 0,
          .retransmission = (flags_ & kRetransmission) != 0,
          .has_timestamp = (flags_ & kHasTimestamp) != 0,
          .destination = QpNumber{from_24_bits(destination_)},
          .psn = Psn(from_24_bits(psn_))};
}

StoredWrite::StoredWrite(const PacketBody& body) {
  const wire::Packet& packet = std::get<wire::Packet>(body.packet);
  const auto& write = std::get<wire::Write>(packet.body);
  MRC_ASSERT(write.address == body.local_address && write.key == kMemoryKey);
  MRC_ASSERT(!wire::has_immediate(packet.bth.opcode) ||
             write.immediate == task_of_address(write.address));
  bth_ = StoredBth(packet.bth);
  receive_msn_ = write.receive_msn;
  msn_ = write.msn;
  ticks_ = write.timestamp.ticks;
  payload_bytes_ = static_cast<std::uint16_t>(body.payload_bytes) & 0x7FFF;
  microseconds_ = write.timestamp.microseconds ? 1 : 0;
  address_ = Halves(write.address);
  message_length_ = write.message_length;
}

PacketBody StoredWrite::expand() const {
  const wire::Bth bth = bth_.expand();
  const std::uint64_t address = address_.value();
  const wire::Write write{
      .receive_msn = receive_msn_,
      .msn = msn_,
      .timestamp = {ticks_, microseconds_ != 0},
      .address = address,
      .key = kMemoryKey,
      .message_length = message_length_,
      .immediate = wire::has_immediate(bth.opcode) ? task_of_address(address) : 0};
  return {wire::Packet{bth, write}, address, payload_bytes_};
}

template <typename Part>
void StoredBody::store(const Part& part) {
  static_assert(sizeof(Part) <= sizeof(part_) && std::is_trivially_copyable_v<Part>);
  std::memcpy(part_.data(), &part, sizeof(Part));
}

template <typename Part>
Part StoredBody::load() const {
  Part part;
  std::memcpy(&part, part_.data(), sizeof(Part));
  return part;
}

StoredBody::StoredBody(const PacketBody& body) {
  if (const auto* roce = std::get_if<RocePacket>(&body.packet)) {
    MRC_ASSERT(roce->payload_bytes == body.payload_bytes);
    store(Roce{Halves(body.local_address), *roce});
    return;
  }
  const wire::Packet& packet = *std::get_if<wire::Packet>(&body.packet);
  MRC_ASSERT(body.payload_bytes == 0 && !wire::is_write(packet.bth.opcode));
  bth_ = StoredBth(packet.bth);
  if (const auto* sack = std::get_if<wire::Sack>(&packet.body)) {
    MRC_ASSERT(sack->cumulative == packet.bth.psn && sack->cc_flags == 0);
    MRC_ASSERT(sack->destination_context ==
               static_cast<std::uint16_t>(static_cast<std::uint32_t>(packet.bth.destination)));
    store_sack(*sack);
    return;
  }
  std::visit(
      [this](const auto& part) {
        if constexpr (sizeof(part) <= sizeof(part_)) store(part);
      },
      packet.body);
}

void StoredBody::store_sack(const wire::Sack& sack) {
  store(Sack{.bitmap = Halves(sack.bitmap),
             .entropy = sack.entropy,
             .received_units = sack.received_units & wire::kReceivedUnitsMask,
             .window_penalty = sack.window_penalty & 0x7FU,
             .restore_window = sack.restore_window,
             .offset_or_probe_id = sack.offset_or_probe_id,
             .source_context = sack.source_context,
             .bitmap_offset = sack.bitmap_offset,
             .ticks = sack.timestamp_ticks,
             .out_of_order = static_cast<std::uint16_t>(sack.out_of_order_count & 0x7FFF),
             .probe_answer = sack.probe_answer,
             .window_units = sack.window_units,
             .mark = static_cast<std::uint8_t>(static_cast<std::uint8_t>(sack.mark) & 3),
             .cc_type = static_cast<std::uint8_t>(sack.cc_type & 0xF)});
}

PacketBody StoredBody::expand() const {
  if (bth_.opcode() == StoredBth().opcode()) {
    const auto roce = load<Roce>();
    return {roce.packet, roce.local_address.value(), roce.packet.payload_bytes};
  }
  switch (static_cast<wire::Opcode>(bth_.opcode())) {
    case wire::Opcode::kSack:
      return expand_sack();
    case wire::Opcode::kAck:
      return plain<wire::Ack>();
    case wire::Opcode::kNack:
      return plain<wire::Nack>();
    case wire::Opcode::kProbe:
      return plain<wire::Probe>();
    case wire::Opcode::kEndpointRequest:
      return plain<wire::EndpointRequest>();
    default:
      return plain<wire::EndpointResponse>();
  }
}

PacketBody StoredBody::expand_sack() const {
  const auto s = load<Sack>();
  const wire::Bth bth = bth_.expand();
  const wire::Sack sack{.mark = static_cast<wire::PathMark>(s.mark),
                        .probe_answer = s.probe_answer != 0,
                        .offset_or_probe_id = s.offset_or_probe_id,
                        .entropy = s.entropy,
                        .source_context = s.source_context,
                        .destination_context = static_cast<std::uint16_t>(bth.destination),
                        .cumulative = bth.psn,
                        .cc_type = s.cc_type,
                        .window_units = s.window_units,
                        .bitmap_offset = s.bitmap_offset,
                        .bitmap = s.bitmap.value(),
                        .timestamp_ticks = s.ticks,
                        .out_of_order_count = s.out_of_order,
                        .restore_window = s.restore_window != 0,
                        .window_penalty = static_cast<std::uint8_t>(s.window_penalty),
                        .received_units = s.received_units};
  return {wire::Packet{bth, sack}, 0, 0};
}

template <typename Body>
PacketBody StoredBody::plain() const {
  return {wire::Packet{bth_.expand(), load<Body>()}, 0, 0};
}

}  // namespace mrc::sim
