#include "script/records.h"

#include <array>
#include <stdexcept>

#include "wire/drop_reason.h"

namespace mrc::script {
namespace {

using core::Completion;
using core::EndpointCounters;
using core::EvCounters;
using core::Event;
using core::PortCounters;
using core::QpStatus;
using Value = std::uint64_t;

constexpr Symbol kStatuses[] = {
    {"success", 0},
    {"flushed", 1},
    {"retry_exceeded", 2},
    {"remote_access", 3},
    {"remote_invalid_request", 4},
    {"remote_operation", 5},
    {"immediate_limit", 6},
    {"receive_missing", 7},
    {"local_protection", 8},
};
static_assert(static_cast<int>(core::CompletionStatus::kLocalProtection) == 8);

constexpr Symbol kStates[] = {{"reset", 0}, {"init", 1}, {"rtr", 2}, {"rts", 3}, {"error", 4}};
static_assert(static_cast<int>(core::QpState::kError) == 4);

constexpr Symbol kEvStates[] = {{"good", 0}, {"skip", 1}, {"assumed_bad", 2}, {"denied", 3}};
static_assert(static_cast<int>(core::EvState::kDenied) == 3);

constexpr Symbol kCompletionKinds[] = {{"send", 0}, {"receive", 1}};

constexpr Symbol kEventKinds[] = {
    {"qp_error", 0},     {"ev_state", 1},        {"ev_floor", 2},
    {"plane_lost", 3},   {"plane_back", 4},      {"local_port", 5},
    {"remote_ports", 6}, {"endpoint_answer", 7}, {"access_refused", 8},
};
static_assert(static_cast<int>(core::EventKind::kAccessRefused) == 8);

constexpr Symbol kErrors[] = {
    {"ok", 0},          {"invalid_argument", 1}, {"not_found", 2}, {"already_exists", 3},
    {"busy", 4},        {"wrong_state", 5},      {"no_space", 6},  {"too_long", 7},
    {"unsupported", 8},
};
static_assert(static_cast<int>(ErrorCode::kUnsupported) == 8);

#define MRC_GET(type, expr) [](const type& r) { return static_cast<Value>(expr); }

const Field<Completion> kCompletionFields[] = {
    {"kind", MRC_GET(Completion, r.kind), 8, kCompletionKinds},
    {"qp", MRC_GET(Completion, r.qp)},
    {"id", MRC_GET(Completion, r.id)},
    {"status", MRC_GET(Completion, r.status), 8, kStatuses},
    {"len", MRC_GET(Completion, r.length)},
    {"imm", MRC_GET(Completion, r.immediate)},
};

const Field<Event> kEventFields[] = {
    {"kind", MRC_GET(Event, r.kind), 8, kEventKinds},
    {"qp", MRC_GET(Event, r.qp)},
    {"evi", MRC_GET(Event, r.ev)},
    {"port", MRC_GET(Event, r.port)},
    {"state", MRC_GET(Event, r.ev_state), 8, kEvStates},
    {"status", MRC_GET(Event, r.status), 8, kStatuses},
    {"drops", MRC_GET(Event, r.drop_count)},
    {"ports", MRC_GET(Event, r.ports.bits())},
    {"ok", MRC_GET(Event, r.ok)},
    {"peer", MRC_GET(Event, r.peer.low)},
    {"id", MRC_GET(Event, r.request_id)},
    {"rtt", MRC_GET(Event, r.rtt_ns)},
};

#define MRC_COUNTER(name) \
  { #name, MRC_GET(QpStatus, r.counters.name) }

const Field<QpStatus> kStatusFields[] = {
    {"state", MRC_GET(QpStatus, r.state), 8, kStates},
    {"sends", MRC_GET(QpStatus, r.sends_outstanding)},
    {"receives", MRC_GET(QpStatus, r.receives_outstanding)},
    {"in_flight", MRC_GET(QpStatus, r.packets_in_flight)},
    {"lost", MRC_GET(QpStatus, r.packets_lost)},
    {"bytes_in_flight", MRC_GET(QpStatus, r.bytes_in_flight)},
    {"peer_bytes_in_flight", MRC_GET(QpStatus, r.peer_bytes_in_flight)},
    {"cwnd", MRC_GET(QpStatus, r.window_bytes)},
    {"window_psns", MRC_GET(QpStatus, r.window_psns)},
    {"next_psn", MRC_GET(QpStatus, r.next_psn.value()), 24},
    {"oldest_unacknowledged", MRC_GET(QpStatus, r.oldest_unacknowledged.value()), 24},
    {"expected_psn", MRC_GET(QpStatus, r.expected_psn.value()), 24},
    {"good_evs", MRC_GET(QpStatus, r.good_evs)},
    {"bad_evs", MRC_GET(QpStatus, r.bad_evs)},
    {"rtt", MRC_GET(QpStatus, r.smoothed_rtt_ns)},
    MRC_COUNTER(data_sent),
    MRC_COUNTER(bytes_sent),
    MRC_COUNTER(retransmitted),
    MRC_COUNTER(lost_by_path_order),
    MRC_COUNTER(lost_by_time),
    MRC_COUNTER(lost_by_timeout),
    MRC_COUNTER(trimmed),
    MRC_COUNTER(refused),
    MRC_COUNTER(spurious),
    MRC_COUNTER(marked),
    MRC_COUNTER(probes_sent),
    MRC_COUNTER(timeouts),
    MRC_COUNTER(messages_completed),
    MRC_COUNTER(data_received),
    MRC_COUNTER(bytes_received),
    MRC_COUNTER(duplicates),
    MRC_COUNTER(immediates),
    MRC_COUNTER(sacks_sent),
    MRC_COUNTER(nacks_sent),
    MRC_COUNTER(acks_sent),
    MRC_COUNTER(sacks_received),
};

const Field<EvCounters> kEvCounterFields[] = {
    {"sent", MRC_GET(EvCounters, r.sent)},
    {"lost", MRC_GET(EvCounters, r.lost)},
    {"marked", MRC_GET(EvCounters, r.marked)},
};

const Field<PortCounters> kPortFields[] = {
    {"packets_sent", MRC_GET(PortCounters, r.packets_sent)},
    {"bytes_sent", MRC_GET(PortCounters, r.bytes_sent)},
    {"packets_received", MRC_GET(PortCounters, r.packets_received)},
    {"bytes_received", MRC_GET(PortCounters, r.bytes_received)},
};

#undef MRC_GET
#undef MRC_COUNTER

}  // namespace

std::span<const Field<Completion>> completion_fields() { return kCompletionFields; }
std::span<const Field<Event>> event_fields() { return kEventFields; }
std::span<const Field<QpStatus>> status_fields() { return kStatusFields; }
std::span<const Field<EvCounters>> ev_counter_fields() { return kEvCounterFields; }

Symbols event_kinds() { return kEventKinds; }
Symbols error_codes() { return kErrors; }
Symbols ev_states() { return kEvStates; }

Symbols drop_reasons() {
  static const auto table = [] {
    std::array<Symbol, kDropReasonCount> symbols{};
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      symbols[i] = {drop_reason_name(static_cast<DropReason>(i)), i};
    }
    return symbols;
  }();
  return table;
}

std::uint64_t read_counter(const EndpointCounters& counters, std::string_view name) {
  if (name == "events_dropped") return counters.events_dropped;
  if (name == "control_dropped") return counters.control_dropped;
  const std::size_t dot = name.find('.');
  if (dot != std::string_view::npos) {
    const std::string_view group = name.substr(0, dot);
    const std::string_view member = name.substr(dot + 1);
    if (group == "drops") {
      return counters.drops[evaluate(member, {}, drop_reasons())];
    }
    if (group.starts_with("port")) {
      const std::uint64_t port = evaluate(group.substr(4), {});
      if (port == 0 || port > counters.ports.size()) throw std::invalid_argument("no such port");
      for (const Field<PortCounters>& field : kPortFields) {
        if (member == field.name) return field.get(counters.ports[port - 1]);
      }
    }
  }
  throw std::invalid_argument("unknown counter: " + std::string(name));
}

}  // namespace mrc::script
