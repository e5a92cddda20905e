// A packet in the simulated network, in two parts: the head is what switches look at on every hop,
// the body only the hosts at both ends.
#pragma once

#include <cstdint>
#include <variant>

#include "fabric/routing.h"
#include "sim/event_queue.h"
#include "sim/growing_array.h"
#include "wire/packet.h"

namespace mrc::sim {

enum class PacketId : std::uint32_t {};
inline constexpr PacketId kNoPacket{0xFFFF'FFFF};
constexpr std::uint32_t index(PacketId id) { return static_cast<std::uint32_t>(id); }

enum class PacketClass : std::uint8_t {
  kControl,  // own queue, served first
  kData,     // trimmable
  kDataNoTrim,
};

enum class PacketTrim : std::uint8_t { kWhole, kTrimmed, kTrimmedLastHop };

struct PacketHead {
  static constexpr std::uint8_t kNotDoomed = 0xFF;

  PacketId next = kNoPacket;  // in the queue it stands in
  fabric::LinkId link{};      // it travels on, or came in on
  std::uint32_t source = 0;   // hosts
  std::uint32_t destination = 0;
  std::uint32_t entropy = 0;
  std::uint32_t bytes = 0;  // on the wire
  fabric::UsidList usids{};
  std::uint8_t hop = 0;                 // uSIDs used up, links crossed
  std::uint8_t doomed_at = kNotDoomed;  // lost on this link of its way
  PacketClass priority = PacketClass::kControl;
  PacketTrim trim = PacketTrim::kWhole;
  bool congestion_experienced = false;
  bool ecn_capable = true;
  bool corrupt = false;
  bool retransmission = false;
};
static_assert(sizeof(PacketHead) == 44);

// A packet of the RoCEv2 baseline.
struct RocePacket {
  enum class Kind : std::uint8_t { kData, kAck, kNak, kCnp };
  Kind kind = Kind::kData;
  bool first = false;  // of its message
  bool last = false;
  bool immediate = false;  // somebody waits for the message
  bool ack_request = false;
  std::uint32_t connection = 0;  // at the receiving host
  std::uint32_t psn = 0;         // data: its own; ACK: the last in order; NAK: the one expected
  std::uint32_t payload_bytes = 0;
};

struct PacketBody {
  std::variant<wire::Packet, RocePacket> packet;
  std::uint64_t local_address = 0;  // of the payload at the sender
  std::uint32_t payload_bytes = 0;
};

class PacketPool {
 public:
  PacketId take() {
    ++in_use_;
    if (free_ == kNoPacket) {
      bodies_.add();
      return PacketId{heads_.add()};
    }
    const PacketId id = free_;
    free_ = heads_[index(id)].next;
    heads_[index(id)] = PacketHead{};
    return id;
  }
  void give_back(PacketId id) {
    --in_use_;
    heads_[index(id)].next = free_;
    free_ = id;
  }

  PacketHead& head(PacketId id) { return heads_[index(id)]; }
  PacketBody& body(PacketId id) { return bodies_[index(id)]; }
  std::uint32_t in_use() const { return in_use_; }
  std::uint32_t peak() const { return heads_.size(); }

 private:
  GrowingArray<PacketHead> heads_;
  GrowingArray<PacketBody> bodies_;
  PacketId free_ = kNoPacket;
  std::uint32_t in_use_ = 0;
};

}  // namespace mrc::sim
