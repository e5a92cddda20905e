// Completions, events, statuses and counters as scripts name them.
#pragma once

#include <span>
#include <string>

#include "core/endpoint.h"
#include "script/values.h"

namespace mrc::script {

std::span<const Field<core::Completion>> completion_fields();
std::span<const Field<core::Event>> event_fields();
std::span<const Field<core::QpStatus>> status_fields();
std::span<const Field<core::EvCounters>> ev_counter_fields();

Symbols drop_reasons();
Symbols event_kinds();
Symbols error_codes();
Symbols ev_states();

// A counter such as `drops.duplicate`, `port2.packets_sent` or `events_dropped`; throws
// std::invalid_argument for an unknown name.
std::uint64_t read_counter(const core::EndpointCounters& counters, std::string_view name);

// All fields in one line.
template <typename T>
std::string describe_fields(std::span<const Field<T>> fields, const T& record) {
  std::string line;
  for (const Field<T>& field : fields) {
    if (!line.empty()) line += ' ';
    line += field.name;
    line += '=';
    line += show_value(field.get(record), field.symbols);
  }
  return line;
}

}  // namespace mrc::script
