// Packets as bytes. In a part of the seeds every packet travels as a whole frame with its ICRC, so
// that flipped, missing and surplus bytes meet the real parser.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/endpoint.h"
#include "dst/flight.h"
#include "dst/swarm.h"
#include "wire/drop_reason.h"

namespace mrc::dst {

// What the driver of an engine makes of bytes it received.
struct Unpacked {
  DropReason drop = DropReason::kNone;
  bool corrupt = false;  // the ICRC is wrong, but the transport part can be read
  core::Arrival arrival;
  wire::Packet packet;
  std::span<const std::byte> payload;  // into the flight's frame
};

// The payload of a write as its sender has it; `address` is what the core calls local_address.
void fetch_payload(std::uint64_t seed, std::uint64_t address, std::span<std::byte> out);

// Writes flight.frame from the rest of the flight.
void pack(Flight& flight, const Swarm& swarm);
// Cuts the frame as a switch does. False if the bytes are no longer those of a write that may be
// cut.
bool trim(Flight& flight, core::TrimState how);
Unpacked unpack(const Flight& flight, const wire::Dialect& dialect);

}  // namespace mrc::dst
