#include "commands/perf/waits.h"

#include <algorithm>
#include <utility>

namespace mrc::tool::perf {
namespace {

constexpr std::int64_t kPeriodNs = 1'000'000;
// A query walks over all paths of a queue pair under the engine's lock: 256 take some 5 us.
constexpr unsigned kQpsPerLook = 4;

struct WaitText {
  const char* name;
  const char* text;
};
constexpr std::array<WaitText, kWaits> kTexts = {{
    {"nothing_posted", "nothing is posted"},
    {"no_path", "no path is good"},
    {"to_resend", "lost packets wait to be sent again"},
    {"window_full", "the congestion window is full"},
    {"nothing", "nothing of these is in the way"},
}};

using Counter = std::uint64_t openmrc_qp_counters::*;
constexpr std::array kSummed = {
    &openmrc_qp_counters::packets_sent,    &openmrc_qp_counters::retransmitted,
    &openmrc_qp_counters::lost_by_time,    &openmrc_qp_counters::lost_by_path_order,
    &openmrc_qp_counters::lost_by_timeout, &openmrc_qp_counters::speculative,
    &openmrc_qp_counters::trimmed,         &openmrc_qp_counters::refused,
    &openmrc_qp_counters::spurious,        &openmrc_qp_counters::marked,
    &openmrc_qp_counters::probes_sent,
};

}  // namespace

const char* name_of(Wait wait) { return kTexts[static_cast<std::size_t>(wait)].name; }
const char* describe(Wait wait) { return kTexts[static_cast<std::size_t>(wait)].text; }

Wait wait_of(const openmrc_qp_counters& counters, std::uint32_t mtu) {
  if (counters.messages_outstanding == 0) return Wait::kProgram;
  if (counters.paths_good + counters.paths_skipped == 0) return Wait::kPath;
  if (counters.packets_to_resend > 0) return Wait::kResend;
  if (counters.window_used_bytes + mtu > counters.window_bytes) return Wait::kWindow;
  return Wait::kNothing;
}

WaitSampler::WaitSampler(unsigned qps, std::uint32_t mtu, Query query)
    : query_(std::move(query)), mtu_(mtu) {
  for (unsigned qp = 0; qp < qps; ++qp)
    first_.push_back(query_(qp));
}

void WaitSampler::look(std::int64_t now_ns) {
  if (now_ns < next_ns_) return;
  next_ns_ = now_ns + kPeriodNs;
  const auto qps = static_cast<unsigned>(first_.size());
  for (unsigned n = std::min(qps, kQpsPerLook); n > 0; --n) {
    look_at(next_qp_);
    next_qp_ = (next_qp_ + 1) % qps;
  }
}

void WaitSampler::look_at(unsigned qp) {
  const openmrc_qp_counters seen = query_(qp);
  ++waits_.looks;
  ++waits_.found[static_cast<std::size_t>(wait_of(seen, mtu_))];
  waits_.paths = seen.paths_good + seen.paths_skipped + seen.paths_assumed_bad + seen.paths_denied;
  waits_.most_bad_paths = std::max(waits_.most_bad_paths, seen.paths_assumed_bad);
  if (seen.round_trip_ns == 0) return;
  const double us = static_cast<double>(seen.round_trip_ns) / 1e3;
  ++round_trips_;
  round_trip_sum_us_ += us;
  waits_.most_round_trip_us = std::max(waits_.most_round_trip_us, us);
}

Waits WaitSampler::take() {
  Waits waits = waits_;
  if (round_trips_ > 0)
    waits.round_trip_us = round_trip_sum_us_ / static_cast<double>(round_trips_);
  for (unsigned qp = 0; qp < first_.size(); ++qp) {
    openmrc_qp_counters counted = query_(qp);
    for (const Counter counter : kSummed) {
      counted.*counter -= first_[qp].*counter;
      waits.sums.*counter += counted.*counter;
    }
    waits.queue_pairs.push_back(counted);
  }
  return waits;
}

}  // namespace mrc::tool::perf
