#include "script/packet_fields.h"

#include <stdexcept>
#include <variant>

namespace mrc::script {
namespace {

using wire::Opcode;
using Value = std::uint64_t;

constexpr unsigned bit(PacketKind kind) { return 1U << static_cast<unsigned>(kind); }
constexpr unsigned kAllKinds = 0xFF;
constexpr unsigned kWrites = bit(PacketKind::kWrite);
constexpr unsigned kAcks = bit(PacketKind::kAck);
constexpr unsigned kNaks = bit(PacketKind::kNak);
constexpr unsigned kSacks = bit(PacketKind::kSack);
constexpr unsigned kNacks = bit(PacketKind::kNack);
constexpr unsigned kProbes = bit(PacketKind::kProbe);
constexpr unsigned kRequests = bit(PacketKind::kEndpointRequest);
constexpr unsigned kResponses = bit(PacketKind::kEndpointResponse);

constexpr Symbol kMarks[] = {{"none", 0}, {"skip_once", 1}, {"always_skip", 2}, {"reserved", 3}};
constexpr Symbol kReasons[] = {
    {"trimmed", 0x01},     {"trimmed_lasthop", 0x02}, {"no_bitmap", 0x06},  {"no_buffer", 0x07},
    {"no_resource", 0x0A}, {"out_of_window", 0x0B},   {"unexpected", 0x19},
};
constexpr Symbol kCodes[] = {
    {"invalid_request", 0x61}, {"remote_access", 0x62},   {"remote_operation", 0x63},
    {"immediate_limit", 0x65}, {"receive_missing", 0x66},
};
constexpr Symbol kOps[] = {{"port_status", 0}, {"ev_probe", 1}};
constexpr Symbol kClasses[] = {
    {"control", 0}, {"trimmable", 1}, {"retransmission", 2}, {"no_trim", 3}};
constexpr Symbol kTrims[] = {{"none", 0}, {"trimmed", 1}, {"lasthop", 2}};
constexpr Symbol kRefusals[] = {{"none", 0}, {"no_buffer", 1}, {"no_resource", 2}};
constexpr Symbol kRemotes[] = {{"other", 99}};

// As in IBTA, AETH's MSN counts completed messages, so an ACK through message n carries n + 1. A
// NAK says by its PSN what it refuses.
Value message_of_ack(std::uint32_t aeth_msn) { return (aeth_msn - 1) & 0xFF'FFFF; }
std::uint32_t ack_of_message(Value msn) {
  return static_cast<std::uint32_t>((msn + 1) & 0xFF'FFFF);
}

template <typename Body>
const Body& body(const ScriptPacket& p) {
  return std::get<Body>(p.packet.body);
}
template <typename Body>
Body& body(ScriptPacket& p) {
  return std::get<Body>(p.packet.body);
}

template <typename T>
T narrow(Value value) {
  return static_cast<T>(value);
}

using P = ScriptPacket;

// `name` reads and writes `expr`, an lvalue in terms of the packet p, of type `type`.
#define MRC_FIELD(kinds, name, bits, symbols, type, expr)                              \
  PacketField {                                                                        \
    {name, [](const P& p) { return static_cast<Value>(expr); }, bits, symbols}, kinds, \
        [](P& p, Value v) { expr = static_cast<type>(v); }                             \
  }
#define MRC_PSN_FIELD(kinds, name, expr)                                     \
  PacketField {                                                              \
    {name, [](const P& p) { return Value{(expr).value()}; }, 24, {}}, kinds, \
        [](P& p, Value v) { expr = Psn(narrow<std::uint32_t>(v)); }          \
  }
#define MRC_READ_ONLY(kinds, name, bits, symbols, expr)                                        \
  PacketField {                                                                                \
    {name, [](const P& p) { return static_cast<Value>(expr); }, bits, symbols}, kinds, nullptr \
  }

constexpr Symbols kNoSymbols = {};

const PacketField kCommonFields[] = {
    MRC_PSN_FIELD(kAllKinds & ~(kRequests | kResponses), "psn", p.packet.bth.psn),
    MRC_FIELD(kAllKinds, "dqp", 24, kNoSymbols, QpNumber, p.packet.bth.destination),
    MRC_FIELD(kAllKinds, "qp", 24, kNoSymbols, QpNumber, p.qp),
    MRC_FIELD(kAllKinds, "ev", 32, kNoSymbols, std::uint32_t, p.entropy),
    MRC_FIELD(kAllKinds, "port", 8, kNoSymbols, PortId, p.port),
    MRC_FIELD(kAllKinds, "len", 32, kNoSymbols, std::uint32_t, p.payload_length),
    MRC_FIELD(kAllKinds, "peer", 64, kRemotes, std::uint64_t, p.remote.low),
    MRC_READ_ONLY(kAllKinds, "class", 8, kClasses, p.traffic_class),
    MRC_READ_ONLY(kAllKinds, "evi", 16, kNoSymbols, p.ev),
    MRC_READ_ONLY(kAllKinds, "addr", 64, kNoSymbols, p.local_address),
    MRC_FIELD(kAllKinds, "rtx", 1, kNoSymbols, bool, p.packet.bth.retransmission),
    MRC_FIELD(kAllKinds, "ackreq", 1, kNoSymbols, bool, p.packet.bth.ack_request),
    MRC_FIELD(kAllKinds, "pad", 2, kNoSymbols, std::uint8_t, p.packet.bth.pad),
    MRC_FIELD(kAllKinds, "ce", 1, kNoSymbols, bool, p.congestion_experienced),
    MRC_FIELD(kAllKinds, "trim", 2, kTrims, core::TrimState, p.trim),
    MRC_FIELD(kAllKinds, "refusal", 2, kRefusals, core::CallerRefusal, p.refusal),
};

const PacketField kWriteFields[] = {
    MRC_FIELD(kWrites, "msn", 16, kNoSymbols, std::uint16_t, body<wire::Write>(p).msn),
    MRC_FIELD(kWrites, "rqmsn", 16, kNoSymbols, std::uint16_t, body<wire::Write>(p).receive_msn),
    MRC_FIELD(kWrites, "stamped", 1, kNoSymbols, bool, p.packet.bth.has_timestamp),
    MRC_FIELD(kWrites, "ts", 16, kNoSymbols, std::uint16_t, body<wire::Write>(p).timestamp.ticks),
    MRC_FIELD(kWrites, "tsr", 1, kNoSymbols, bool, body<wire::Write>(p).timestamp.microseconds),
    MRC_FIELD(kWrites, "va", 64, kNoSymbols, std::uint64_t, body<wire::Write>(p).address),
    MRC_FIELD(kWrites, "key", 32, kNoSymbols, Rkey, body<wire::Write>(p).key),
    MRC_FIELD(kWrites, "total", 32, kNoSymbols, std::uint32_t, body<wire::Write>(p).message_length),
    MRC_FIELD(kWrites, "imm", 32, kNoSymbols, std::uint32_t, body<wire::Write>(p).immediate),
};

const PacketField kFeedbackFields[] = {
    PacketField{
        {"through", [](const P& p) { return message_of_ack(body<wire::Ack>(p).msn); }, 24, {}},
        kAcks,
        [](P& p, Value v) { body<wire::Ack>(p).msn = ack_of_message(v); }},
    MRC_FIELD(kNaks, "done", 16, kNoSymbols, std::uint32_t, body<wire::Ack>(p).msn),
    MRC_FIELD(kAcks, "syndrome", 8, kNoSymbols, std::uint8_t, body<wire::Ack>(p).syndrome),
    MRC_FIELD(kNaks, "code", 8, kCodes, std::uint8_t, body<wire::Ack>(p).syndrome),

    MRC_FIELD(kNacks, "reason", 8, kReasons, wire::NackReason, body<wire::Nack>(p).reason),
    MRC_FIELD(kNacks, "echo", 32, kNoSymbols, std::uint32_t, body<wire::Nack>(p).entropy),
    MRC_PSN_FIELD(kNacks, "npsn", body<wire::Nack>(p).psn),
    MRC_FIELD(kNacks, "ts", 16, kNoSymbols, std::uint16_t, body<wire::Nack>(p).timestamp_ticks),
    MRC_FIELD(kNacks, "cctype", 4, kNoSymbols, std::uint8_t, body<wire::Nack>(p).cc_type),
    MRC_FIELD(kNacks, "sctx", 16, kNoSymbols, std::uint16_t, body<wire::Nack>(p).source_context),
    MRC_FIELD(kNacks, "dctx", 16, kNoSymbols, std::uint16_t,
              body<wire::Nack>(p).destination_context),

    MRC_FIELD(kProbes, "id", 16, kNoSymbols, std::uint16_t, body<wire::Probe>(p).probe_id),
    MRC_FIELD(kProbes, "ts", 16, kNoSymbols, std::uint16_t, body<wire::Probe>(p).timestamp.ticks),
    MRC_FIELD(kProbes, "tsr", 1, kNoSymbols, bool, body<wire::Probe>(p).timestamp.microseconds),
    MRC_FIELD(kProbes, "sctx", 16, kNoSymbols, std::uint16_t, body<wire::Probe>(p).source_context),
    MRC_FIELD(kProbes, "dctx", 16, kNoSymbols, std::uint16_t,
              body<wire::Probe>(p).destination_context),
};

// A PSN that the header holds as a distance from cack.
Psn trigger_of(const wire::Sack& sack) {
  return sack.cumulative + static_cast<std::uint32_t>(sack.trigger_offset());
}
Psn base_of(const wire::Sack& sack) {
  return sack.cumulative + static_cast<std::uint32_t>(sack.bitmap_offset);
}
std::int16_t distance(Psn psn, Psn from) {
  return static_cast<std::int16_t>(psn.distance_from(from));
}

const PacketField kSackFields[] = {
    MRC_PSN_FIELD(kSacks, "cack", body<wire::Sack>(p).cumulative),
    MRC_FIELD(kSacks, "pr", 1, kNoSymbols, bool, body<wire::Sack>(p).probe_answer),
    MRC_FIELD(kSacks, "id", 16, kNoSymbols, std::uint16_t, body<wire::Sack>(p).offset_or_probe_id),
    PacketField{{"trigger",
                 [](const P& p) { return Value{trigger_of(body<wire::Sack>(p)).value()}; },
                 24,
                 {}},
                kSacks,
                [](P& p, Value v) {
                  wire::Sack& sack = body<wire::Sack>(p);
                  const Psn psn(narrow<std::uint32_t>(v));
                  sack.offset_or_probe_id =
                      static_cast<std::uint16_t>(distance(psn, sack.cumulative));
                }},
    PacketField{
        {"base", [](const P& p) { return Value{base_of(body<wire::Sack>(p)).value()}; }, 24, {}},
        kSacks,
        [](P& p, Value v) {
          wire::Sack& sack = body<wire::Sack>(p);
          sack.bitmap_offset = distance(Psn(narrow<std::uint32_t>(v)), sack.cumulative);
        }},
    MRC_FIELD(kSacks, "bitmap", 64, kNoSymbols, std::uint64_t, body<wire::Sack>(p).bitmap),
    MRC_FIELD(kSacks, "mark", 2, kMarks, wire::PathMark, body<wire::Sack>(p).mark),
    MRC_FIELD(kSacks, "echo", 32, kNoSymbols, std::uint32_t, body<wire::Sack>(p).entropy),
    MRC_FIELD(kSacks, "mpr", 8, kNoSymbols, std::uint8_t, body<wire::Sack>(p).window_units),
    MRC_FIELD(kSacks, "ts", 16, kNoSymbols, std::uint16_t, body<wire::Sack>(p).timestamp_ticks),
    MRC_FIELD(kSacks, "ooo", 15, kNoSymbols, std::uint16_t, body<wire::Sack>(p).out_of_order_count),
    MRC_FIELD(kSacks, "restore", 1, kNoSymbols, bool, body<wire::Sack>(p).restore_window),
    MRC_FIELD(kSacks, "pen", 7, kNoSymbols, std::uint8_t, body<wire::Sack>(p).window_penalty),
    MRC_FIELD(kSacks, "rcvd", 24, kNoSymbols, std::uint32_t, body<wire::Sack>(p).received_units),
    MRC_FIELD(kSacks, "cctype", 4, kNoSymbols, std::uint8_t, body<wire::Sack>(p).cc_type),
    MRC_FIELD(kSacks, "sctx", 16, kNoSymbols, std::uint16_t, body<wire::Sack>(p).source_context),
    MRC_FIELD(kSacks, "dctx", 16, kNoSymbols, std::uint16_t,
              body<wire::Sack>(p).destination_context),
};

const PacketField kEndpointFields[] = {
    PacketField{{"id", [](const P& p) { return Value{p.packet.bth.psn.value()}; }, 16, {}},
                kRequests | kResponses,
                [](P& p, Value v) { p.packet.bth.psn = Psn(narrow<std::uint32_t>(v & 0xFFFF)); }},
    MRC_FIELD(kRequests, "op", 2, kOps, wire::EndpointOp, body<wire::EndpointRequest>(p).op),
    MRC_FIELD(kRequests, "ports", 32, kNoSymbols, std::uint32_t,
              body<wire::EndpointRequest>(p).port_status),
    MRC_FIELD(kRequests, "ts", 16, kNoSymbols, std::uint16_t,
              body<wire::EndpointRequest>(p).timestamp.ticks),
    MRC_FIELD(kRequests, "tsr", 1, kNoSymbols, bool,
              body<wire::EndpointRequest>(p).timestamp.microseconds),
    MRC_FIELD(kResponses, "op", 2, kOps, wire::EndpointOp, body<wire::EndpointResponse>(p).op),
    MRC_FIELD(kResponses, "ts", 16, kNoSymbols, std::uint16_t,
              body<wire::EndpointResponse>(p).timestamp_ticks),
};

#undef MRC_FIELD
#undef MRC_PSN_FIELD
#undef MRC_READ_ONLY

constexpr std::span<const PacketField> kTables[] = {kCommonFields, kWriteFields, kFeedbackFields,
                                                    kSackFields, kEndpointFields};

struct PacketWord {
  const char* word;
  PacketPattern pattern;
};
constexpr PacketWord kWords[] = {
    {"write", {PacketKind::kWrite, Opcode::kWriteOnly, true}},
    {"write_first", {PacketKind::kWrite, Opcode::kWriteFirst}},
    {"write_middle", {PacketKind::kWrite, Opcode::kWriteMiddle}},
    {"write_last", {PacketKind::kWrite, Opcode::kWriteLast}},
    {"write_last_imm", {PacketKind::kWrite, Opcode::kWriteLastImm}},
    {"write_only", {PacketKind::kWrite, Opcode::kWriteOnly}},
    {"write_only_imm", {PacketKind::kWrite, Opcode::kWriteOnlyImm}},
    {"ack", {PacketKind::kAck, Opcode::kAck}},
    {"nak", {PacketKind::kNak, Opcode::kAck}},
    {"sack", {PacketKind::kSack, Opcode::kSack}},
    {"nack", {PacketKind::kNack, Opcode::kNack}},
    {"probe", {PacketKind::kProbe, Opcode::kProbe}},
    {"endpoint_request", {PacketKind::kEndpointRequest, Opcode::kEndpointRequest}},
    {"endpoint_response", {PacketKind::kEndpointResponse, Opcode::kEndpointResponse}},
};

const char* word_of(const wire::Packet& packet) {
  for (const PacketWord& entry : kWords) {
    if (!entry.pattern.any_write && matches(entry.pattern, packet)) return entry.word;
  }
  return "packet";
}

}  // namespace

PacketKind kind_of(const wire::Packet& packet) {
  switch (packet.bth.opcode) {
    case Opcode::kAck: {
      const std::uint8_t syndrome = std::get<wire::Ack>(packet.body).syndrome;
      return (syndrome & 0x60) == 0 ? PacketKind::kAck : PacketKind::kNak;
    }
    case Opcode::kSack:
      return PacketKind::kSack;
    case Opcode::kNack:
      return PacketKind::kNack;
    case Opcode::kProbe:
      return PacketKind::kProbe;
    case Opcode::kEndpointRequest:
      return PacketKind::kEndpointRequest;
    case Opcode::kEndpointResponse:
      return PacketKind::kEndpointResponse;
    default:
      return PacketKind::kWrite;
  }
}

const char* kind_name(PacketKind kind) {
  for (const PacketWord& entry : kWords) {
    if (entry.pattern.kind == kind) return entry.word;
  }
  return "packet";
}

bool find_pattern(std::string_view word, PacketPattern& out) {
  for (const PacketWord& entry : kWords) {
    if (word == entry.word) {
      out = entry.pattern;
      return true;
    }
  }
  return false;
}

bool matches(const PacketPattern& pattern, const wire::Packet& packet) {
  if (kind_of(packet) != pattern.kind) return false;
  return pattern.any_write || packet.bth.opcode == pattern.opcode;
}

ScriptPacket blank_packet(const PacketPattern& pattern) {
  ScriptPacket packet;
  packet.packet.bth.opcode = pattern.opcode;
  switch (pattern.kind) {
    case PacketKind::kWrite:
      packet.packet.body = wire::Write{};
      break;
    case PacketKind::kAck:
      packet.packet.body = wire::Ack{.syndrome = wire::kSyndromeAck};
      break;
    case PacketKind::kNak:
      packet.packet.body = wire::Ack{.syndrome = wire::kSyndromeNakRemoteOperation};
      break;
    case PacketKind::kSack:
      packet.packet.body = wire::Sack{.bitmap_offset = 1};
      break;
    case PacketKind::kNack:
      packet.packet.body = wire::Nack{};
      break;
    case PacketKind::kProbe:
      packet.packet.body = wire::Probe{};
      break;
    case PacketKind::kEndpointRequest:
      packet.packet.body = wire::EndpointRequest{};
      break;
    case PacketKind::kEndpointResponse:
      packet.packet.body = wire::EndpointResponse{};
      break;
  }
  return packet;
}

std::vector<const PacketField*> fields_of(PacketKind kind) {
  std::vector<const PacketField*> fields;
  for (const auto& table : kTables) {
    for (const PacketField& field : table) {
      if ((field.kinds & bit(kind)) != 0) fields.push_back(&field);
    }
  }
  return fields;
}

const PacketField* find_field(PacketKind kind, std::string_view name) {
  for (const PacketField* field : fields_of(kind)) {
    if (name == field->name) return field;
  }
  return nullptr;
}

std::vector<std::uint64_t> sacked_psns(const wire::Sack& sack) {
  std::vector<std::uint64_t> psns;
  const Psn base = base_of(sack);
  for (unsigned i = 0; i < 64; ++i) {
    const Psn psn = base + i;
    const bool set = ((sack.bitmap >> i) & 1) != 0;
    if (set && psn.distance_from(sack.cumulative) > 0) psns.push_back(psn.value());
  }
  return psns;
}

void set_sacked_psns(wire::Sack& sack, const std::vector<std::uint64_t>& psns) {
  const Psn base = base_of(sack);
  sack.bitmap = 0;
  for (const std::uint64_t value : psns) {
    const std::int32_t position = Psn(narrow<std::uint32_t>(value)).distance_from(base);
    if (position < 0 || position > 63) {
      throw std::invalid_argument("a PSN outside the 64 bits of the bitmap; set base=");
    }
    sack.bitmap |= std::uint64_t{1} << position;
  }
}

std::string describe(const ScriptPacket& packet) {
  std::string line = word_of(packet.packet);
  const PacketKind kind = kind_of(packet.packet);
  const ScriptPacket blank = blank_packet({kind, packet.packet.bth.opcode, false});
  for (const PacketField* field : fields_of(kind)) {
    const std::uint64_t value = field->get(packet);
    if (value == field->get(blank) && std::string_view(field->name) != "psn") continue;
    line += ' ';
    line += field->name;
    line += '=';
    line += show_value(value, field->symbols);
  }
  return line;
}

}  // namespace mrc::script
