// Packets that a script injects: the fields it names, and for all others what an honest peer would
// send.
#pragma once

#include <vector>

#include "script/packet_fields.h"
#include "script/settings.h"
#include "script/world.h"

namespace mrc::script {

struct InjectDefaults {
  QpNumber qp{};  // whom the packet is for
  QpNumber peer_qp{};
  Address peer = address_of(1);
  Rkey key{};  // of the region registered last
  std::uint64_t address = 0;
};

// Left out fields: a write goes to the start of the last region, is whole, and carries the time; a
// SACK or NACK echoes path and timestamp of the packet it answers, and counts the bytes that have
// arrived.
ScriptPacket make_packet(World& world, const PacketPattern& pattern,
                         const std::vector<Assignment>& fields, const InjectDefaults& defaults,
                         const Variables& variables, unsigned repeat);

}  // namespace mrc::script
