#include "script/world.h"

#include <cinttypes>
#include <cstdio>
#include <stdexcept>

#include "script/records.h"

namespace mrc::script {
namespace {

ScriptPacket script_packet(const core::TxPacket& tx, TimeNs now) {
  ScriptPacket packet;
  packet.time = now;
  packet.packet = tx.packet;
  packet.qp = tx.local_qp;
  packet.port = tx.port;
  packet.entropy = tx.entropy;
  packet.payload_length = tx.payload_length;
  packet.remote = tx.destination;
  packet.ev = tx.ev;
  packet.traffic_class = tx.traffic_class;
  packet.local_address = tx.local_address;
  return packet;
}

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
  const Status started = driver_.start(config);
  if (!started.ok()) throw std::runtime_error(std::string("config: ") + started.what());
}

void World::note(const std::string& line) { log_ += "  " + show_time(now_) + "  " + line + "\n"; }

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
  core::RxResult result;
  driver_.deliver(now_, arrival, packet.packet, [&](const core::RxResult& given) {
    result = given;
    if (result.drop != DropReason::kNone) {
      note(std::string("     dropped ") + drop_reason_name(result.drop));
    }
    check_placement(result.placement);
  });
  pump();
  return result;
}

void World::check_placement(const core::Placement& placement) const {
  if (placement.length == 0) return;
  const std::uint64_t first = placement.address;
  const std::uint64_t last = first + (placement.length - 1);
  bool inside = false;
  for (const auto& [key, region] : regions_) {
    const std::uint64_t region_last = region.address + (region.length - 1);
    inside = inside || (first >= region.address && last >= first && last <= region_last);
  }
  if (!inside) throw std::runtime_error("a placement outside every registered region");
}

void World::inject_corrupt(const ScriptPacket& packet) {
  note("in   (corrupt) " + describe(packet));
  const core::Arrival arrival{.source = packet.remote,
                              .port = packet.port,
                              .entropy = packet.entropy,
                              .payload_length = packet.payload_length};
  driver_.deliver_corrupt(now_, arrival, packet.packet);
  pump();
}

Result<Rkey> World::register_memory(const core::MemoryRegion& region) {
  Result<Rkey> key = engine().register_memory(region, keys_);
  if (key.ok()) regions_[key.value()] = region;
  return key;
}

Status World::invalidate_memory(Rkey key) {
  regions_.erase(key);
  return engine().invalidate_memory(key);
}

void World::on_completion(const core::Completion& completion) {
  note("     " + describe(completion));
  completions.push_back(completion);
}

void World::on_event(const core::Event& event) {
  note("     " + describe(event));
  events.push_back(event);
}

void World::send(const core::TxPacket& tx, PortMask) {
  const ScriptPacket packet = script_packet(tx, now_);
  note("out  " + describe(packet));
  if (kind_of(tx.packet) == PacketKind::kWrite) {
    writes_[tx.local_qp][tx.packet.bth.psn.value()].packet = packet;
  }
  if (kind_of(tx.packet) == PacketKind::kProbe) {
    probes_[tx.local_qp][std::get<wire::Probe>(tx.packet.body).probe_id] = packet;
  }
  packets.push_back(packet);
}

void World::after_pump() const {
  const core::Endpoint& engine = driver_.engine();
  for (const QpNumber qp : watched_) {
    const auto status = engine.query_qp(qp);
    if (!status.ok() || status.value().packets_in_flight == 0) continue;
    if (engine.next_deadline() == kNever) {
      throw std::runtime_error("packets are in flight and no deadline is set");
    }
  }
}

void World::fail(const char* what, const core::TxPacket* packet) {
  if (packet != nullptr) note("out  " + describe(script_packet(*packet, now_)));
  throw std::runtime_error(what);
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
