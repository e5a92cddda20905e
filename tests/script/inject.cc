#include "script/inject.h"

#include <stdexcept>
#include <variant>

namespace mrc::script {
namespace {

constexpr DurationNs kTickNs = 128;
constexpr std::uint32_t kPeerEntropy = 0x7000;  // the path our peer sends on

class Builder {
 public:
  Builder(World& world, const PacketPattern& pattern, const std::vector<Assignment>& fields,
          const InjectDefaults& defaults)
      : world_(world),
        fields_(fields),
        defaults_(defaults),
        kind_(pattern.kind),
        packet_(blank_packet(pattern)) {}

  ScriptPacket build(const Variables& variables, unsigned repeat) {
    set_defaults();
    set_named(variables, repeat);
    if (kind_ == PacketKind::kWrite) finish_write();
    if (kind_ == PacketKind::kSack) finish_sack(variables);
    if (kind_ == PacketKind::kNack) finish_nack();
    if (kind_ == PacketKind::kAck) finish_ack();
    return packet_;
  }

 private:
  const Assignment* named(std::string_view name) const {
    for (const Assignment& field : fields_) {
      if (field.name == name) return &field;
    }
    return nullptr;
  }

  std::uint16_t ticks_now() const { return static_cast<std::uint16_t>(world_.now() / kTickNs); }

  void set_defaults() {
    packet_.qp = defaults_.qp;
    packet_.remote = defaults_.peer;
    packet_.entropy = kPeerEntropy;
    wire::Bth& bth = packet_.packet.bth;
    bth.destination = defaults_.qp;
    const auto ours = static_cast<std::uint16_t>(defaults_.qp);
    const auto theirs = static_cast<std::uint16_t>(defaults_.peer_qp);
    if (auto* write = std::get_if<wire::Write>(&packet_.packet.body)) {
      bth.has_timestamp = true;
      write->timestamp.ticks = ticks_now();
      write->address = defaults_.address;
      write->key = defaults_.key;
    } else if (auto* sack = std::get_if<wire::Sack>(&packet_.packet.body)) {
      sack->source_context = theirs;
      sack->destination_context = ours;
    } else if (auto* nack = std::get_if<wire::Nack>(&packet_.packet.body)) {
      nack->source_context = theirs;
      nack->destination_context = ours;
    } else if (auto* probe = std::get_if<wire::Probe>(&packet_.packet.body)) {
      probe->source_context = theirs;
      probe->destination_context = ours;
      probe->timestamp.ticks = ticks_now();
    } else if (auto* request = std::get_if<wire::EndpointRequest>(&packet_.packet.body)) {
      bth.destination = kEndpointQp;
      request->timestamp.ticks = ticks_now();
    } else if (std::holds_alternative<wire::EndpointResponse>(packet_.packet.body)) {
      bth.destination = kEndpointQp;
    }
  }

  void set_named(const Variables& variables, unsigned repeat) {
    for (const Assignment& field : fields_) {
      const bool list = kind_ == PacketKind::kSack && field.name == "got";
      if (!list && find_field(kind_, field.name) == nullptr) {
        throw std::invalid_argument("unknown field: " + field.name);
      }
    }
    for (const PacketField* field : fields_of(kind_)) {
      const Assignment* assignment = named(field->name);
      if (assignment == nullptr) continue;
      if (field->set == nullptr) {
        throw std::invalid_argument(std::string("cannot be set: ") + field->name);
      }
      field->set(packet_, evaluate(assignment->value, variables, field->symbols, repeat));
    }
  }

  void finish_write() {
    auto& write = std::get<wire::Write>(packet_.packet.body);
    if (named("total") == nullptr) write.message_length = packet_.payload_length;
    if (named("pad") == nullptr) {
      packet_.packet.bth.pad = static_cast<std::uint8_t>((4 - packet_.payload_length % 4) % 4);
    }
  }

  void finish_sack(const Variables& variables) {
    auto& sack = std::get<wire::Sack>(packet_.packet.body);
    Psn newest = sack.cumulative;
    if (const Assignment* got = named("got")) {
      const auto psns = evaluate_list(got->value, variables);
      set_sacked_psns(sack, psns);
      if (!psns.empty()) newest = Psn(static_cast<std::uint32_t>(psns.back()));
    }
    if (!sack.probe_answer && named("trigger") == nullptr) {
      sack.offset_or_probe_id = static_cast<std::uint16_t>(newest.distance_from(sack.cumulative));
    }
    if (named("psn") == nullptr) packet_.packet.bth.psn = sack.cumulative;
    const Psn trigger = sack.cumulative + static_cast<std::uint32_t>(sack.trigger_offset());
    const ScriptPacket* answered = sack.probe_answer
                                       ? world_.sent_probe(defaults_.qp, sack.offset_or_probe_id)
                                       : world_.sent_write(defaults_.qp, trigger);
    if (answered != nullptr) {
      if (named("echo") == nullptr) sack.entropy = answered->entropy;
      if (named("ts") == nullptr) sack.timestamp_ticks = timestamp_of(*answered);
    }
    const std::uint64_t bytes = world_.acknowledged_bytes(defaults_.qp, sack);
    if (named("rcvd") == nullptr) {
      sack.received_units = static_cast<std::uint32_t>((bytes + 255) / 256) & 0xFF'FFFF;
    }
  }

  // A transport ACK carries the last PSN of its message.
  void finish_ack() {
    if (named("psn") != nullptr) return;
    const std::uint64_t msn = find_field(kind_, "through")->get(packet_);
    const ScriptPacket* last =
        world_.last_of_message(defaults_.qp, static_cast<std::uint16_t>(msn));
    if (last != nullptr) packet_.packet.bth.psn = last->packet.bth.psn;
  }

  void finish_nack() {
    auto& nack = std::get<wire::Nack>(packet_.packet.body);
    if (named("npsn") == nullptr) nack.psn = packet_.packet.bth.psn;
    const ScriptPacket* answered = world_.sent_write(defaults_.qp, nack.psn);
    if (answered == nullptr) return;
    if (named("echo") == nullptr) nack.entropy = answered->entropy;
    if (named("ts") == nullptr) nack.timestamp_ticks = timestamp_of(*answered);
  }

  static std::uint16_t timestamp_of(const ScriptPacket& sent) {
    if (const auto* write = std::get_if<wire::Write>(&sent.packet.body)) {
      return write->timestamp.ticks;
    }
    return std::get<wire::Probe>(sent.packet.body).timestamp.ticks;
  }

  World& world_;
  const std::vector<Assignment>& fields_;
  const InjectDefaults& defaults_;
  PacketKind kind_;
  ScriptPacket packet_;
};

}  // namespace

ScriptPacket make_packet(World& world, const PacketPattern& pattern,
                         const std::vector<Assignment>& fields, const InjectDefaults& defaults,
                         const Variables& variables, unsigned repeat) {
  return Builder(world, pattern, fields, defaults).build(variables, repeat);
}

}  // namespace mrc::script
