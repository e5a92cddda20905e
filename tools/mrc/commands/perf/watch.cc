#include "commands/perf/watch.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "failure.h"
#include "os/clock.h"
#include "os/interrupt.h"

namespace mrc::tool::perf {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kCheckNs = kSecond / 10;
constexpr std::int64_t kLateAfterNs = 2 * kSecond;

double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

}  // namespace

std::int64_t now_ns() { return os::monotonic_now(); }

Watch::Watch(const WatchOptions& options, collective::Exchange& exchange, const Terminal& terminal)
    : options_(options),
      exchange_(exchange),
      progress_(terminal, "measuring"),
      start_ns_(now_ns()),
      moved_ns_(start_ns_),
      next_check_ns_(start_ns_ + kCheckNs),
      interval_ns_(start_ns_) {}

bool Watch::keep_going(std::int64_t now, std::uint64_t messages, double share) {
  if (messages != moved_messages_) {
    moved_messages_ = messages;
    moved_ns_ = now;
    next_standstill_ns_ = 0;
  }
  if (options_.report_every_s > 0 && seconds(now - interval_ns_) >= options_.report_every_s) {
    options_.on_interval({seconds(now), seconds(interval_ns_ - start_ns_), seconds(now - start_ns_),
                          messages - interval_messages_});
    interval_ns_ = now;
    interval_messages_ = messages;
  }
  if (now < next_check_ns_) return true;
  next_check_ns_ = now + kCheckNs;
  check_peer();
  if (seconds(now - moved_ns_) > options_.timeout_s)
    throw Failure(fmt::format("no message to {} completed for {:.0f} s; {}", exchange_.peer(),
                              options_.timeout_s, why_silent()),
                  FailureKind::kTimeout);
  if (now - moved_ns_ >= kLateAfterNs) tell_standstill(now);
  progress_.update(share);
  return !os::Interrupt::raised();
}

std::string Watch::why_silent() const {
  if (!options_.suspicion.empty()) return options_.suspicion;
  return "is UDP between the hosts blocked, or the MTU of the way too small? (`mrc doctor --serve` "
         "there and `mrc doctor --peer HOST` here tell)";
}

void Watch::tell_standstill(std::int64_t now) {
  if (now < next_standstill_ns_) return;
  const std::int64_t since = now - moved_ns_;
  next_standstill_ns_ = now + since;
  fmt::print(stderr, "no message to {} completes, {:.0f} s so far; {}\n", exchange_.peer(),
             seconds(since), why_silent());
}

void Watch::note_late(std::int64_t now, std::uint64_t under_way) {
  if (late_.since_ns == 0) late_ = {.since_ns = now, .next_ns = now + kLateAfterNs};
  if (now < late_.next_ns) return;
  late_.next_ns = now + (now - late_.since_ns);
  fmt::print(stderr,
             "measured; waiting for {} message{} to {} that {} under way, {:.0f} s so far\n",
             under_way, under_way == 1 ? "" : "s", exchange_.peer(), under_way == 1 ? "is" : "are",
             seconds(now - late_.since_ns));
}

// Unless it measures too, the peer is silent now; whatever it says is bad news.
void Watch::check_peer() {
  if (options_.peer_may_speak ? !exchange_.hung_up() : !exchange_.readable()) return;
  exchange_.receive(options_.timeout_s);
  throw Failure(fmt::format("{} does not keep to the protocol of mrc perf", exchange_.peer()));
}

}  // namespace mrc::tool::perf
