// What the hosts at both ends of a packet look at, and how it is kept while the packet is under
// way.
//
// There are dozens of packets under way for each host, so what the simulator's packets all have in
// common is left out: the partition key, the memory key, the local address of a write, which is the
// remote one, its immediate, which is the task its address names, cumulative PSN and destination of
// a SACK, which its BTH repeats, and the flags that go with congestion controllers other than ours.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "wire/packet.h"

namespace mrc::sim {

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

// 64 bits without the alignment.
struct Halves {
  explicit Halves(std::uint64_t value = 0)
      : low(static_cast<std::uint32_t>(value)), high(static_cast<std::uint32_t>(value >> 32)) {}
  std::uint64_t value() const { return std::uint64_t{high} << 32 | low; }
  std::uint32_t low;
  std::uint32_t high;
};

class StoredBth {
 public:
  StoredBth() = default;
  explicit StoredBth(const wire::Bth& bth);
  wire::Bth expand() const;
  std::uint8_t opcode() const { return opcode_; }  // 0 of a default one, which is none of ours

 private:
  std::uint8_t opcode_ = 0;
  std::uint8_t flags_ = 0;
  std::array<std::uint8_t, 3> destination_{};
  std::array<std::uint8_t, 3> psn_{};
};

// A write: nearly all that is under way.
class StoredWrite {
 public:
  StoredWrite() = default;
  explicit StoredWrite(const PacketBody& body);
  PacketBody expand() const;

 private:
  StoredBth bth_;
  std::uint16_t receive_msn_ = 0;
  std::uint16_t msn_ = 0;
  std::uint16_t ticks_ = 0;
  std::uint16_t payload_bytes_ : 15 = 0;
  std::uint16_t microseconds_ : 1 = 0;  // the unit of the ticks
  Halves address_;
  std::uint32_t message_length_ = 0;
};
static_assert(sizeof(StoredWrite) == 28);

// Any other packet.
class StoredBody {
 public:
  StoredBody() = default;
  explicit StoredBody(const PacketBody& body);
  PacketBody expand() const;

 private:
  struct Sack {
    Halves bitmap;
    std::uint32_t entropy;
    std::uint32_t received_units : 24;
    std::uint32_t window_penalty : 7;
    std::uint32_t restore_window : 1;
    std::uint16_t offset_or_probe_id;
    std::uint16_t source_context;
    std::int16_t bitmap_offset;
    std::uint16_t ticks;
    std::uint16_t out_of_order : 15;
    std::uint16_t probe_answer : 1;
    std::uint8_t window_units;
    std::uint8_t mark : 2;
    std::uint8_t cc_type : 4;
  };
  struct Roce {
    Halves local_address;
    RocePacket packet;
  };

  void store_sack(const wire::Sack& sack);
  template <typename Part>
  void store(const Part& part);
  template <typename Part>
  Part load() const;
  PacketBody expand_sack() const;
  template <typename Body>
  PacketBody plain() const;

  StoredBth bth_;  // a default one: of the baseline
  alignas(4) std::array<std::byte, 28> part_{};
};
static_assert(sizeof(StoredBody) == 36);

}  // namespace mrc::sim
