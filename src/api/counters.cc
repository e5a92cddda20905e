// Counters of queue pairs, beside the OCP API.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "api/handles.h"
#include "api/verbs_types.h"
#include "openmrc_counters.h"

namespace mrc::api {
namespace {

// Of version 1. Fields that are added later stand behind it.
constexpr std::size_t kSmallest = 200;
static_assert(offsetof(openmrc_qp_counters, paths_denied) + sizeof(std::uint32_t) == kSmallest);

openmrc_qp_counters counters_of(const nic::QpTotals& totals, std::size_t filled) {
  const core::QpStatus& status = totals.status;
  const core::QpCounters& counted = status.counters;
  const auto bytes = [](std::int64_t value) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, value));
  };
  const auto paths = [&](core::EvState state) {
    return totals.paths[static_cast<std::size_t>(state)];
  };
  return {.size = static_cast<std::uint32_t>(filled),
          .reserved = 0,
          .packets_sent = counted.data_sent,
          .bytes_sent = counted.bytes_sent,
          .retransmitted = counted.retransmitted,
          .lost_by_path_order = counted.lost_by_path_order,
          .lost_by_time = counted.lost_by_time,
          .lost_by_timeout = counted.lost_by_timeout,
          .speculative = counted.hedged,
          .trimmed = counted.trimmed,
          .refused = counted.refused,
          .spurious = counted.spurious,
          .marked = counted.marked,
          .probes_sent = counted.probes_sent,
          .timeouts = counted.timeouts,
          .messages_completed = counted.messages_completed,
          .sacks_received = counted.sacks_received,
          .packets_received = counted.data_received,
          .bytes_received = counted.bytes_received,
          .duplicates = counted.duplicates,
          .immediates = counted.immediates,
          .sacks_sent = counted.sacks_sent,
          .nacks_sent = counted.nacks_sent,
          .acks_sent = counted.acks_sent,
          .paths_good = paths(core::EvState::kGood),
          .paths_skipped = paths(core::EvState::kSkip),
          .paths_assumed_bad = paths(core::EvState::kAssumedBad),
          .paths_denied = paths(core::EvState::kDenied),
          .window_bytes = bytes(status.window_bytes),
          .window_used_bytes = bytes(status.peer_bytes_in_flight),
          .round_trip_ns = bytes(status.smoothed_rtt_ns),
          .packets_in_flight = status.packets_in_flight,
          .packets_to_resend = status.packets_lost,
          .messages_outstanding = status.sends_outstanding,
          .reserved_2 = 0};
}

}  // namespace
}  // namespace mrc::api

MRC_API_EXPORT int openmrc_query_qp_counters(mrc_qp* qp, openmrc_qp_counters* counters) {
  if (!mrc::api::valid(qp) || counters == nullptr) return EINVAL;
  const std::size_t room = counters->size;
  if (room < mrc::api::kSmallest) return EINVAL;
  mrc::nic::QpTotals totals;
  const int error = qp->pair.nic().totals(totals);
  if (error != 0) return error;
  // The program's structure may be longer or shorter than ours.
  const std::size_t filled = std::min(room, sizeof *counters);
  const openmrc_qp_counters known = mrc::api::counters_of(totals, filled);
  auto* const bytes = reinterpret_cast<unsigned char*>(counters);
  std::memcpy(bytes, &known, filled);
  std::memset(bytes + filled, 0, room - filled);
  return 0;
}
