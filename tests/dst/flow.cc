#include "dst/flow.h"

#include <algorithm>

namespace mrc::dst {

const Message& Flow::post(const core::SendRequest& request) {
  Message message;
  message.request = request;
  message.first_packet = posted_packets();
  message.packet_count = std::max<std::uint32_t>(1, (request.length + path_mtu_ - 1) / path_mtu_);
  const auto number = static_cast<std::uint32_t>(messages_.size());
  message.immediate_number = static_cast<std::uint32_t>(immediates_.size());
  if (request.with_immediate) immediates_.push_back(number);
  message_numbers_.insert(message_numbers_.end(), message.packet_count, number);
  arrived_.resize(message_numbers_.size(), false);
  return messages_.emplace_back(message);
}

std::int64_t Flow::packet_number(Psn on_wire) const {
  return static_cast<std::int64_t>(sent_) + on_wire.distance_from(psn(sent_));
}

PacketShape Flow::shape(std::uint64_t packet) const {
  using wire::Opcode;
  const Message& message = message_of(packet);
  const auto position = static_cast<std::uint32_t>(packet - message.first_packet);
  const bool first = position == 0;
  const bool last = position + 1 == message.packet_count;
  const bool immediate = message.request.with_immediate;
  PacketShape shape;
  shape.message = message_numbers_[packet];
  shape.offset = position * path_mtu_;
  shape.length = last ? message.request.length - shape.offset : path_mtu_;
  if (first && last) {
    shape.opcode = immediate ? Opcode::kWriteOnlyImm : Opcode::kWriteOnly;
  } else if (last) {
    shape.opcode = immediate ? Opcode::kWriteLastImm : Opcode::kWriteLast;
  } else {
    shape.opcode = first ? Opcode::kWriteFirst : Opcode::kWriteMiddle;
  }
  return shape;
}

std::uint64_t Flow::arrived_between(std::uint64_t first, std::uint64_t end) const {
  std::uint64_t count = 0;
  for (std::uint64_t packet = first; packet < end; ++packet)
    count += has_arrived(packet) ? 1 : 0;
  return count;
}

void Flow::on_arrived(std::uint64_t packet) {
  arrived_[packet] = true;
  ++arrived_count_;
  arrived_bytes_ += shape(packet).length;
  ++messages_[message_numbers_[packet]].arrived;
  while (contiguous_ < posted_packets() && arrived_[contiguous_])
    ++contiguous_;
}

}  // namespace mrc::dst
