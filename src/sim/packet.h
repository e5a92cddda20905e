// A packet in the simulated network, in two parts: the head is what switches look at on every hop,
// the body only the hosts at both ends.
#pragma once

#include <array>
#include <cstddef>
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
  static constexpr std::uint8_t kNotDoomed = 0xF;

  Time arrives_at = 0;        // at the end of the link it travels on
  PacketId next = kNoPacket;  // in the queue it stands in, or on that link
  fabric::LinkId link{};      // it travels on, or came in on
  std::uint32_t source = 0;   // hosts
  std::uint32_t destination = 0;
  std::uint32_t entropy = 0;                // with SRv6 it stands for the path
  std::uint16_t bytes = 0;                  // on the wire
  std::uint8_t hop : 4 = 0;                 // uSIDs used up, links crossed
  std::uint8_t doomed_at : 4 = kNotDoomed;  // lost on this link of its way
  PacketClass priority : 2 = PacketClass::kControl;
  PacketTrim trim : 2 = PacketTrim::kWhole;
  bool congestion_experienced : 1 = false;
  bool ecn_capable : 1 = true;
  bool corrupt : 1 = false;
  bool retransmission : 1 = false;
};
static_assert(sizeof(PacketHead) == 32);

// What a sender writes into the carrier of a packet.
inline fabric::UsidList usids_of(const fabric::Routing& routing, const PacketHead& head) {
  fabric::Path path;
  routing.path_of(head.entropy, path);
  return routing.usids(head.source, head.destination, path);
}

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

// The same in a quarter of the space, for the packets on their way. What the simulator's packets
// all have in common is left out: the partition key, the local address of a write, which is the
// remote one, cumulative PSN and destination of a SACK, which its BTH repeats, and the flags that
// go with congestion controllers other than ours.
class StoredBody {
 public:
  StoredBody() = default;
  explicit StoredBody(const PacketBody& body);
  PacketBody expand() const;

 private:
  static constexpr std::uint8_t kRoce = 0;  // not an opcode of ours

  // 64 bits without the alignment.
  struct Halves {
    explicit Halves(std::uint64_t value = 0)
        : low(static_cast<std::uint32_t>(value)), high(static_cast<std::uint32_t>(value >> 32)) {}
    std::uint64_t value() const { return std::uint64_t{high} << 32 | low; }
    std::uint32_t low;
    std::uint32_t high;
  };
  struct Write {
    std::uint16_t receive_msn;
    std::uint16_t msn;
    std::uint16_t ticks;
    std::uint16_t payload_bytes;
    Halves address;
    std::uint32_t key;
    std::uint32_t message_length;
    std::uint32_t immediate;
  };
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

  void store_bth(const wire::Bth& bth);
  void store_write(const wire::Write& write, const PacketBody& body);
  void store_sack(const wire::Sack& sack);
  wire::Bth load_bth() const;
  template <typename Part>
  void store(const Part& part);
  template <typename Part>
  Part load() const;
  PacketBody expand_write() const;
  PacketBody expand_sack() const;
  template <typename Body>
  PacketBody plain() const;

  std::uint8_t opcode_ = kRoce;
  std::uint8_t flags_ = 0;
  std::array<std::uint8_t, 3> destination_{};
  std::array<std::uint8_t, 3> psn_{};
  alignas(4) std::array<std::byte, 28> part_{};
};
static_assert(sizeof(StoredBody) == 36);

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
  PacketBody body(PacketId id) const { return bodies_[index(id)].expand(); }
  void set_body(PacketId id, const PacketBody& body) { bodies_[index(id)] = StoredBody(body); }
  void prefetch_body(PacketId id) const { __builtin_prefetch(&bodies_[index(id)]); }
  std::uint32_t in_use() const { return in_use_; }
  std::uint32_t peak() const { return heads_.size(); }

 private:
  GrowingArray<PacketHead> heads_;
  GrowingArray<StoredBody> bodies_;
  PacketId free_ = kNoPacket;
  std::uint32_t in_use_ = 0;
};

}  // namespace mrc::sim
