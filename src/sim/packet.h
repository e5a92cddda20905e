// A packet in the simulated network, in two parts: the head is what switches look at on every hop,
// the body only the hosts at both ends.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "fabric/routing.h"
#include "sim/event_queue.h"
#include "sim/growing_array.h"
#include "sim/stored_body.h"
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
  static constexpr unsigned kHostBits = 20;

  // When it is at the end of the link it travels on.
  Time arrives_at() const {
    return static_cast<Time>(std::uint64_t{arrives_top} << 48 |
                             std::uint64_t{arrives_middle} << 32 | arrives_low);
  }
  void set_arrives_at(Time at) {
    MRC_ASSERT(at >> 56 == 0);
    arrives_low = static_cast<std::uint32_t>(at);
    arrives_middle = static_cast<std::uint16_t>(at >> 32);
    arrives_top = static_cast<std::uint8_t>(at >> 48);
  }

  std::uint32_t arrives_low = 0;
  std::uint16_t arrives_middle = 0;
  std::uint16_t bytes = 0;                   // on the wire
  PacketId next = kNoPacket;                 // in the queue it stands in, or on that link
  fabric::LinkId link{};                     // it travels on, or came in on
  std::uint32_t entropy = 0;                 // with SRv6 it stands for the path
  std::uint32_t source : kHostBits = 0;      // hosts
  std::uint32_t hop : 4 = 0;                 // uSIDs used up, links crossed
  std::uint32_t doomed_at : 4 = kNotDoomed;  // lost on this link of its way
  PacketClass priority : 2 = PacketClass::kControl;
  PacketTrim trim : 2 = PacketTrim::kWhole;
  std::uint32_t destination : kHostBits = 0;
  std::uint32_t arrives_top : 8 = 0;
  bool congestion_experienced : 1 = false;
  bool ecn_capable : 1 = true;
  bool corrupt : 1 = false;
  bool retransmission : 1 = false;
};
static_assert(sizeof(PacketHead) == 28);

// What a sender writes into the carrier of a packet.
inline fabric::UsidList usids_of(const fabric::Routing& routing, const PacketHead& head) {
  fabric::Path path;
  routing.path_of(head.entropy, path);
  return routing.usids(head.source, head.destination, path);
}

// Writes have a shelf of their own, since they take less space than others.
class PacketPool {
 public:
  PacketId take(const PacketBody& body) {
    const auto* packet = std::get_if<wire::Packet>(&body.packet);
    const bool write = packet != nullptr && wire::is_write(packet->bth.opcode);
    const PacketId id = write ? take_from(kWrites) : take_from(kOthers);
    if (write) {
      writes_[place(id)] = StoredWrite(body);
    } else {
      others_[place(id)] = StoredBody(body);
    }
    return id;
  }
  void give_back(PacketId id) {
    PacketId& free = shelves_[shelf(id)].free;
    head(id).next = free;
    free = id;
  }

  // Two writes change places: each is where the other was, in its queue, too.
  void exchange(PacketId a, PacketId b) {
    MRC_ASSERT(shelf(a) == kWrites && shelf(b) == kWrites);
    std::swap(head(a), head(b));
    std::swap(head(a).next, head(b).next);
    std::swap(writes_[place(a)], writes_[place(b)]);
  }

  PacketHead& head(PacketId id) { return shelves_[shelf(id)].heads[place(id)]; }
  PacketBody body(PacketId id) const {
    return shelf(id) == kWrites ? writes_[place(id)].expand() : others_[place(id)].expand();
  }
  void prefetch_body(PacketId id) const {
    if (shelf(id) == kWrites) {
      __builtin_prefetch(&writes_[place(id)]);
    } else {
      __builtin_prefetch(&others_[place(id)]);
    }
  }

 private:
  // The highest bit of an id tells the shelf, the rest the place there.
  static constexpr unsigned kPlaceBits = 31;
  static constexpr unsigned kOthers = 0;
  static constexpr unsigned kWrites = 1;
  struct Shelf {
    GrowingArray<PacketHead> heads;
    PacketId free = kNoPacket;
  };

  static unsigned shelf(PacketId id) { return index(id) >> kPlaceBits; }
  static std::uint32_t place(PacketId id) { return index(id) & ((1U << kPlaceBits) - 1); }

  PacketId take_from(unsigned number) {
    Shelf& s = shelves_[number];
    if (s.free == kNoPacket) {
      number == kWrites ? writes_.add() : others_.add();
      return PacketId{s.heads.add() | number << kPlaceBits};
    }
    const PacketId id = s.free;
    s.free = head(id).next;
    head(id) = PacketHead{};
    return id;
  }

  std::array<Shelf, 2> shelves_;
  GrowingArray<StoredWrite> writes_;
  GrowingArray<StoredBody> others_;
};

}  // namespace mrc::sim
