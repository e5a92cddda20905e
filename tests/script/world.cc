#include "script/world.h"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <stdexcept>

#include "script/records.h"
#include "wire/codec.h"

namespace mrc::script {
namespace {

// More of either at one instant means that the engine does not come to rest.
constexpr unsigned kMaxPacketsAtOnce = 200'000;
constexpr unsigned kMaxTimersAtOnce = 1'000;

}  // namespace

std::string show_time(TimeNs time) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%" PRId64 ".%03dus", time / 1000,
                static_cast<int>(time % 1000));
  return buffer;
}

std::string describe(const core::Completion& completion) {
  return "completion " + describe_fields(completion_fields(), completion);
}

std::string describe(const core::Event& event) {
  return "event " + describe_fields(event_fields(), event);
}

World::World(const core::EndpointConfig& config) : free_ports_(PortMask::first(config.port_count)) {
  auto created = core::Endpoint::create(config);
  if (!created.ok()) throw std::runtime_error(std::string("config: ") + created.status().what());
  engine_ = std::move(created).value();
}

void World::note(const std::string& line) { log_ += "  " + show_time(now_) + "  " + line + "\n"; }

void World::fire_timer() {
  timers_at_once_ = last_timer_ == now_ ? timers_at_once_ + 1 : 1;
  last_timer_ = now_;
  if (timers_at_once_ > kMaxTimersAtOnce) {
    throw std::runtime_error("the engine asks for its timer at the same instant again and again");
  }
  engine_->on_timer(now_);
  pump();
}

bool World::step(TimeNs limit) {
  const TimeNs deadline = engine_->next_deadline();
  if (deadline > limit) {
    now_ = limit;
    return false;
  }
  if (deadline > now_) now_ = deadline;
  fire_timer();
  return true;
}

void World::run_until(TimeNs time) {
  while (step(time)) {
  }
}

core::RxResult World::inject(const ScriptPacket& packet) {
  note("in   " + describe(packet));
  const core::Arrival arrival{
      .source = packet.remote,
      .port = packet.port,
      .entropy = packet.entropy,
      .congestion_experienced = packet.congestion_experienced,
      .trim = packet.trim,
      .refusal = packet.refusal,
      .payload_length = packet.payload_length,
  };
  const core::RxResult result = engine_->on_packet(now_, arrival, packet.packet);
  if (result.drop != DropReason::kNone) {
    note(std::string("     dropped ") + drop_reason_name(result.drop));
  }
  if (result.placement.length > 0) {
    const std::uint64_t first = result.placement.address;
    const std::uint64_t last = first + (result.placement.length - 1);
    bool inside = false;
    for (const auto& [key, region] : regions_) {
      const std::uint64_t region_last = region.address + (region.length - 1);
      inside = inside || (first >= region.address && last >= first && last <= region_last);
    }
    if (!inside) throw std::runtime_error("a placement outside every registered region");
  }
  pump();
  return result;
}

void World::inject_corrupt(const ScriptPacket& packet) {
  note("in   (corrupt) " + describe(packet));
  const core::Arrival arrival{.source = packet.remote,
                              .port = packet.port,
                              .entropy = packet.entropy,
                              .payload_length = packet.payload_length};
  engine_->on_corrupt_packet(now_, arrival, packet.packet);
  pump();
}

Result<Rkey> World::register_memory(const core::MemoryRegion& region) {
  Result<Rkey> key = engine_->register_memory(region, keys_);
  if (key.ok()) regions_[key.value()] = region;
  return key;
}

Status World::invalidate_memory(Rkey key) {
  regions_.erase(key);
  return engine_->invalidate_memory(key);
}

void World::pump() {
  core::TxPacket tx;
  unsigned count = 0;
  while (engine_->next_packet(now_, free_ports_, tx)) {
    if (++count > kMaxPacketsAtOnce) throw std::runtime_error("the engine never stops sending");
    take_packet(tx);
  }
  core::Completion completion;
  while (engine_->next_completion(completion)) {
    note("     " + describe(completion));
    completions.push_back(completion);
  }
  core::Event event;
  while (engine_->next_event(event)) {
    note("     " + describe(event));
    events.push_back(event);
  }
  check_deadline();
}

void World::take_packet(const core::TxPacket& tx) {
  ScriptPacket packet;
  packet.time = now_;
  packet.packet = tx.packet;
  packet.qp = tx.local_qp;
  packet.port = tx.port;
  packet.entropy = tx.entropy;
  packet.payload_length = tx.payload_length;
  packet.remote = tx.destination;
  packet.ev = tx.ev;
  packet.traffic_class = tx.traffic_class;
  packet.local_address = tx.local_address;
  note("out  " + describe(packet));
  if (!free_ports_.contains(tx.port))
    throw std::runtime_error("a packet on a port that is not free");
  check_encoding(tx.packet, tx.payload_length);
  if (kind_of(tx.packet) == PacketKind::kWrite) {
    writes_[tx.local_qp][tx.packet.bth.psn.value()].packet = packet;
  }
  if (kind_of(tx.packet) == PacketKind::kProbe) {
    probes_[tx.local_qp][std::get<wire::Probe>(tx.packet.body).probe_id] = packet;
  }
  packets.push_back(packet);
}

void World::check_encoding(const wire::Packet& packet, std::uint32_t payload_length) const {
  std::vector<std::byte> bytes(wire::kMaxTransportHeader + payload_length + 4);
  const std::size_t header = wire::build_transport(packet, bytes);
  bytes.resize(header + payload_length + packet.bth.pad);
  wire::Packet parsed;
  std::span<const std::byte> payload;
  const DropReason reason = wire::parse_transport(bytes, parsed, payload);
  if (reason != DropReason::kNone) {
    throw std::runtime_error(std::string("a packet sent does not decode: ") +
                             drop_reason_name(reason));
  }
  // Fields that the opcode does not carry mean nothing.
  wire::Packet carried = packet;
  if (auto* write = std::get_if<wire::Write>(&carried.body)) {
    if (!wire::has_immediate(packet.bth.opcode)) write->immediate = 0;
    if (!packet.bth.has_timestamp) write->timestamp = {};
  }
  if (!(parsed == carried)) throw std::runtime_error("a packet sent changes when it is encoded");
}

void World::check_deadline() const {
  for (const QpNumber qp : watched_) {
    const auto status = engine_->query_qp(qp);
    if (!status.ok() || status.value().packets_in_flight == 0) continue;
    if (engine_->next_deadline() == kNever) {
      throw std::runtime_error("packets are in flight and no deadline is set");
    }
  }
}

const ScriptPacket* World::sent_write(QpNumber qp, Psn psn) const {
  const auto writes = writes_.find(qp);
  if (writes == writes_.end()) return nullptr;
  const auto found = writes->second.find(psn.value());
  return found == writes->second.end() ? nullptr : &found->second.packet;
}

const ScriptPacket* World::last_of_message(QpNumber qp, std::uint16_t msn) const {
  const auto writes = writes_.find(qp);
  if (writes == writes_.end()) return nullptr;
  const ScriptPacket* newest = nullptr;
  for (const auto& [psn, sent] : writes->second) {
    if (std::get<wire::Write>(sent.packet.packet.body).msn != msn) continue;
    if (!wire::ends_message(sent.packet.packet.bth.opcode)) continue;
    if (newest == nullptr || sent.packet.time > newest->time) newest = &sent.packet;
  }
  return newest;
}

const ScriptPacket* World::sent_probe(QpNumber qp, std::uint16_t id) const {
  const auto probes = probes_.find(qp);
  if (probes == probes_.end()) return nullptr;
  const auto found = probes->second.find(id);
  return found == probes->second.end() ? nullptr : &found->second;
}

std::uint64_t World::acknowledged_bytes(QpNumber qp, const wire::Sack& sack) {
  auto& writes = writes_[qp];
  for (const std::uint64_t psn : sacked_psns(sack)) {
    const auto found = writes.find(static_cast<std::uint32_t>(psn));
    if (found != writes.end()) found->second.acknowledged = true;
  }
  std::uint64_t bytes = 0;
  for (auto& [psn, sent] : writes) {
    if (Psn(psn).distance_from(sack.cumulative) <= 0) sent.acknowledged = true;
    if (!sent.acknowledged) continue;
    bytes += wire::nominal_size(sent.packet.packet, sent.packet.payload_length);
  }
  return bytes;
}

}  // namespace mrc::script
