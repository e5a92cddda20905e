// One direction of a connection, as the contract has it: what was posted, which packets that makes,
// and which of them have arrived. Packets are numbered from 0 without wrapping; the wire shows
// first_psn + number modulo 2^24.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"
#include "core/work.h"
#include "wire/packet.h"

namespace mrc::dst {

struct Message {
  core::SendRequest request;
  std::uint64_t first_packet = 0;
  std::uint32_t packet_count = 1;
  std::uint32_t arrived = 0;           // packets
  std::uint32_t immediate_number = 0;  // position among the messages with an immediate
  bool verified = false;               // its bytes were seen in the peer's memory
};

// What a write packet must look like.
struct PacketShape {
  wire::Opcode opcode = wire::Opcode::kWriteOnly;
  std::uint32_t message = 0;
  std::uint32_t offset = 0;  // of its payload in the message
  std::uint32_t length = 0;
};

class Flow {
 public:
  Flow(Psn first_psn, std::uint32_t path_mtu) : first_psn_(first_psn), path_mtu_(path_mtu) {}

  const Message& post(const core::SendRequest& request);

  Psn first_psn() const { return first_psn_; }
  Psn psn(std::uint64_t packet) const {
    return first_psn_ + static_cast<std::uint32_t>(packet & Psn::kMask);
  }
  // The packet number nearest to what has been sent; negative before the first packet.
  std::int64_t packet_number(Psn on_wire) const;

  PacketShape shape(std::uint64_t packet) const;
  const Message& message_of(std::uint64_t packet) const {
    return messages_[message_numbers_[packet]];
  }
  const std::vector<Message>& messages() const { return messages_; }
  Message& message(std::size_t number) { return messages_[number]; }
  // Message numbers of those with an immediate.
  const std::vector<std::uint32_t>& immediates() const { return immediates_; }

  std::uint64_t posted_packets() const { return message_numbers_.size(); }
  std::uint64_t sent_packets() const { return sent_; }  // new ones; all below were sent
  // Messages of which every packet was sent.
  std::size_t sent_messages() const {
    return sent_ == posted_packets() ? messages_.size() : message_numbers_[sent_];
  }
  std::uint64_t contiguous() const { return contiguous_; }  // all below have arrived
  std::uint64_t arrived_packets() const { return arrived_count_; }
  std::uint64_t arrived_bytes() const { return arrived_bytes_; }
  bool has_arrived(std::uint64_t packet) const {
    return packet < posted_packets() && arrived_[packet];
  }
  std::uint64_t arrived_between(std::uint64_t first, std::uint64_t end) const;
  bool message_arrived(std::size_t number) const {
    return messages_[number].arrived == messages_[number].packet_count;
  }
  bool first_message_done() const {
    return !messages_.empty() && contiguous_ >= messages_.front().packet_count;
  }
  bool all_arrived() const { return contiguous_ == posted_packets(); }

  void on_sent_new() { ++sent_; }
  void on_arrived(std::uint64_t packet);

 private:
  Psn first_psn_;
  std::uint32_t path_mtu_;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> message_numbers_;  // by packet
  std::vector<bool> arrived_;                   // by packet
  std::uint64_t sent_ = 0;
  std::uint64_t contiguous_ = 0;
  std::uint64_t arrived_count_ = 0;
  std::uint64_t arrived_bytes_ = 0;
  std::vector<std::uint32_t> immediates_;
};

}  // namespace mrc::dst
