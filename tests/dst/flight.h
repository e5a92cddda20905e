// A packet under way, with what the world knows about it and the receiver does not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/types.h"
#include "core/endpoint.h"
#include "dst/attack.h"
#include "dst/connection.h"
#include "wire/packet.h"

namespace mrc::dst {

enum class Provenance : std::uint8_t {
  kGenuine,   // sent by the engine of `from`, or a copy of such a packet
  kForged,    // made up or altered: no engine may act on it as if it were genuine
  kHarmless,  // made up, and worth nothing to whoever believes it
};

inline constexpr std::uint32_t kNoConnection = 0xFFFF'FFFF;

struct Flight {
  wire::Packet packet;
  Address source;  // as the receiver will see it
  unsigned from = 0;
  unsigned to = 0;
  PortId port{1};
  std::uint32_t entropy = 0;
  core::TrafficClass traffic_class = core::TrafficClass::kControl;
  std::uint64_t payload_address = 0;  // local to the sender
  std::uint32_t payload_length = 0;
  bool marked = false;
  core::TrimState trim = core::TrimState::kWhole;
  bool corrupt = false;      // its ICRC will not match
  bool misdirected = false;  // the network gave it to the wrong host
  Provenance provenance = Provenance::kGenuine;
  Attack attack = Attack::kCount;  // what the forger is after

  EndRef origin{kNoConnection, 0};  // the end that sent it, if any did
  std::uint32_t path = 0;
  std::vector<std::byte> frame;  // the bytes, where the world carries bytes

  bool is_write() const { return wire::is_write(packet.bth.opcode); }
};

// Flights are addressed by slot; a slot is reused after release.
class FlightPool {
 public:
  std::uint32_t take() {
    if (free_.empty()) {
      flights_.emplace_back();
      return static_cast<std::uint32_t>(flights_.size() - 1);
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void release(std::uint32_t slot) { free_.push_back(slot); }
  Flight& operator[](std::uint32_t slot) { return flights_[slot]; }

 private:
  std::deque<Flight> flights_;
  std::vector<std::uint32_t> free_;
};

}  // namespace mrc::dst
