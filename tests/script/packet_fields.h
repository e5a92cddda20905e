// Packets as scripts name them: kinds, opcodes and fields, readable and settable by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/endpoint.h"
#include "script/values.h"
#include "wire/packet.h"

namespace mrc::script {

// Packets of one kind leave in an order that scripts may rely on; different kinds do not.
// A transport NAK counts as a kind of its own although it shares its header with the ACK.
enum class PacketKind : std::uint8_t {
  kWrite,
  kAck,
  kNak,
  kSack,
  kNack,
  kProbe,
  kEndpointRequest,
  kEndpointResponse,
};

// A packet with what surrounds it, sent by the engine or about to be injected into it.
struct ScriptPacket {
  TimeNs time = 0;
  wire::Packet packet;
  QpNumber qp{};  // ours: sender or addressee
  PortId port{1};
  std::uint32_t entropy = 0;
  std::uint32_t payload_length = 0;
  Address remote;

  // Of sent packets only.
  EvIndex ev = kNoEv;
  core::TrafficClass traffic_class = core::TrafficClass::kControl;
  std::uint64_t local_address = 0;

  // Of injected packets only.
  bool congestion_experienced = false;
  core::TrimState trim = core::TrimState::kWhole;
  core::CallerRefusal refusal = core::CallerRefusal::kNone;
};

PacketKind kind_of(const wire::Packet& packet);
const char* kind_name(PacketKind kind);

// What a word such as `write`, `write_first` or `sack` asks for.
struct PacketPattern {
  PacketKind kind = PacketKind::kWrite;
  wire::Opcode opcode = wire::Opcode::kWriteOnly;
  bool any_write = false;  // the word leaves the opcode open
};
// False when the word names no packet.
bool find_pattern(std::string_view word, PacketPattern& out);
bool matches(const PacketPattern& pattern, const wire::Packet& packet);

// A packet of the pattern's kind with empty headers, ready for its fields to be set.
ScriptPacket blank_packet(const PacketPattern& pattern);

struct PacketField : Field<ScriptPacket> {
  unsigned kinds = 0;  // bit set of PacketKind
  void (*set)(ScriptPacket&, std::uint64_t) = nullptr;
};
// All fields of a kind, in an order in which they can be set (a base before what is relative to
// it).
std::vector<const PacketField*> fields_of(PacketKind kind);
const PacketField* find_field(PacketKind kind, std::string_view name);

// The PSNs above cack that a SACK's bitmap shows as arrived, in ascending order from cack on.
std::vector<std::uint64_t> sacked_psns(const wire::Sack& sack);
// Sets base and bitmap so that they show exactly these PSNs. Throws std::invalid_argument when they
// do not fit into 64 bits.
void set_sacked_psns(wire::Sack& sack, const std::vector<std::uint64_t>& psns);

// One line for the log.
std::string describe(const ScriptPacket& packet);

}  // namespace mrc::script
