#include "nic/explanation.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>

#include "base/plane.h"
#include "nic/engine/pump_state.h"
#include "nic/queue_pair.h"

namespace mrc::nic {
namespace {

[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...) {
  std::array<char, 256> buffer;
  va_list args;
  va_start(args, format);
  const int length = std::vsnprintf(buffer.data(), buffer.size(), format, args);
  va_end(args);
  if (length <= 0) return {};
  return {buffer.data(), std::min(static_cast<std::size_t>(length), buffer.size() - 1)};
}

std::string seconds(DurationNs ns) {
  if (ns >= kSecondNs) return text("%.1f s", static_cast<double>(ns) / kSecondNs);
  if (ns >= kMillisecondNs) return text("%.1f ms", static_cast<double>(ns) / kMillisecondNs);
  return text("%.1f us", static_cast<double>(ns) / kMicrosecondNs);
}

std::string last_heard(const QueuePairImpl& qp, TimeNs now) {
  if (qp.e.last_heard == 0) return "it never answered";
  return "last heard " + seconds(now - qp.e.last_heard) +
         text(" ago on plane %u", plane_of(qp.e.last_heard_port));
}

// The path that lost most, since a person will want to look there first.
std::string worst_path(const QueuePairImpl& qp, const core::Endpoint& endpoint) {
  const core::EvProfile& profile = qp.e.paths->profile;
  EvIndex worst = kNoEv;
  core::EvCounters most;
  for (unsigned i = 0; i < profile.size(); ++i) {
    const auto ev = static_cast<EvIndex>(i);
    const Result<core::EvCounters> counters = endpoint.query_ev_counters(qp.number(), ev);
    if (!counters.ok() || counters.value().lost <= most.lost) continue;
    worst = ev;
    most = counters.value();
  }
  if (worst == kNoEv) return {};
  const core::EvEntry& path = profile.entry(worst);
  return text("; most losses on plane %u, EV %u (entropy 0x%08x): %u of %u packets",
              plane_of(path.port), static_cast<unsigned>(worst), path.entropy, most.lost,
              most.sent);
}

std::string no_answer(const QueuePairImpl& qp, const PumpState& state, const core::QpStatus& status,
                      TimeNs now) {
  const core::EvProfile& profile = qp.e.paths->profile;
  const unsigned planes = profile.ports().count();
  std::string out = text(
      " did not answer on any of %u paths of %u planes; gave up after %u+%u "
      "retries (%llu packets sent again); ",
      profile.size(), planes, unsigned{qp.e.rts.linear_retries},
      unsigned{qp.e.rts.exponential_retries},
      static_cast<unsigned long long>(status.counters.retransmitted));
  out += last_heard(qp, now);
  if (status.smoothed_rtt_ns > 0) out += "; last round trip " + seconds(status.smoothed_rtt_ns);
  out += worst_path(qp, *state.endpoint);
  out += text("; check that the peer process lives and that UDP port %u is open between the hosts",
              state.udp_port + unsigned{qp.e.remote.process});
  return out;
}

const char* reason(core::CompletionStatus status) {
  using enum core::CompletionStatus;
  switch (status) {
    case kRemoteAccess:
      return " refused the memory key, right or range of a write; check the remote address and "
             "key, "
             "and that the peer has not deregistered the memory";
    case kRemoteInvalidRequest:
      return " found our packets contradictory; check that both ends agree on path MTU, first PSN "
             "and dialect";
    case kRemoteOperation:
      return " says that its queue pair failed; look for the cause there";
    case kImmediateLimit:
      return ": more immediates were in flight than agreed; check max_wimm of both ends, and that "
             "first_rqmsn of their dialects is the same";
    case kReceiveMissing:
      return ": an immediate found no receive posted; receives must be posted before the sender "
             "starts";
    case kLocalProtection:
      return ": memory of a request was deregistered or unmapped on this side before it was done";
    default:
      return ": the queue pair was stopped on this side (its completion queue overran, or memory "
             "that a peer was writing to was unmapped)";
  }
}

}  // namespace

std::string address_text(const wire::IpAddress& address) {
  return std::string(wire::format_address(address).view());
}

std::string explain_failure(const QueuePairImpl& qp, const PumpState& state,
                            const core::Event& event) {
  std::string out = "peer " + address_text(qp.e.remote.gid) +
                    text(" (qp 0x%06x)", static_cast<unsigned>(qp.e.rtr.remote_qp));
  const Result<core::QpStatus> status = state.endpoint->query_qp(qp.number());
  if (event.status == core::CompletionStatus::kRetryExceeded && status.ok() && qp.e.paths) {
    return out + no_answer(qp, state, status.value(), event.time);
  }
  out += reason(event.status);
  return out + " (" + last_heard(qp, event.time) + ")";
}

}  // namespace mrc::nic
