#include "commands/perf/transfer.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "failure.h"
#include "os/interrupt.h"

namespace mrc::tool::perf {
namespace {

constexpr std::uint64_t kMaxChain = 16;
constexpr std::int64_t kPeakNs = 100'000'000;
// Looking at the counters of more queue pairs takes time from the measurement; completions of so
// many are spread out by themselves.
constexpr std::size_t kMostCounted = 64;
constexpr double kWarmUpShare = 0.1;
constexpr double kWarmUpMaxS = 0.5;
constexpr unsigned kStepsPerLook = 256;  // looking at the TCP connection is a system call

}  // namespace

Sender::Sender(Endpoint& endpoint, const SenderOptions& options)
    : endpoint_(endpoint),
      options_(options),
      flows_(options.plan.qps),
      window_(options.layout.slots()),
      signal_every_(options.signal_every),
      total_(options.plan.iterations * options.plan.qps) {
  // The window must hold a completion at any time, or nothing would open it again.
  const std::uint64_t most = std::max<std::uint64_t>(window_ / 2, 1);
  signal_every_ = std::min(signal_every_ == 0 ? kMaxChain : signal_every_, most);
}

std::vector<std::uint64_t> Sender::counts() const {
  std::vector<std::uint64_t> counts;
  for (const Flow& flow : flows_)
    counts.push_back(flow.posted);
  return counts;
}

// How many messages in all a flow may have posted by now.
std::uint64_t Sender::allowed(unsigned qp) const {
  std::uint64_t limit = flows_[qp].completed + window_;
  if (!by_time()) limit = std::min(limit, options_.plan.iterations);
  if (!options_.credits.empty()) {
    const void* const word = &options_.credits[qp * kCreditBytes];
    limit =
        std::min(limit, __atomic_load_n(static_cast<const std::uint64_t*>(word), __ATOMIC_ACQUIRE));
  }
  return limit;
}

void Sender::post(unsigned qp, std::uint64_t count, bool last) {
  Flow& flow = flows_[qp];
  std::array<Write, kMaxChain> chain = {};
  const std::uint64_t bytes = options_.layout.message_bytes();
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t message = flow.posted++;
    Write& write = chain[i];
    write.message = message;
    write.bytes = options_.source.message(qp, message, bytes);
    write.remote_address = endpoint_.peer().memory + options_.layout.offset_of(qp, message);
    write.signaled = last || flow.posted % signal_every_ == 0 ||
                     (!by_time() && flow.posted == options_.plan.iterations);
    if (write.signaled) flow.signaled = flow.posted;
    if (!options_.credits.empty()) write.immediate = static_cast<std::uint32_t>(message);
  }
  endpoint_.post(qp, std::span(chain).first(count));
}

void Sender::post_all() {
  for (unsigned qp = 0; qp < flows_.size(); ++qp) {
    const std::uint64_t limit = allowed(qp);
    if (limit <= flows_[qp].posted) continue;
    post(qp, std::min(limit - flows_[qp].posted, kMaxChain), false);
  }
}

void Sender::reap() {
  const auto found = endpoint_.poll_sends();
  patience_.looked(!found.empty());
  for (const ibv_wc& wc : found) {
    Flow& flow = flows_.at(Endpoint::qp_of(wc));
    const std::uint64_t completed = Endpoint::message_of(wc) + 1;
    completed_ += completed - flow.completed;
    flow.completed = completed;
  }
}

double Sender::share(std::int64_t now) const {
  if (by_time()) return static_cast<double>(now - begin_ns_) / 1e9 / options_.plan.seconds;
  return static_cast<double>(completed_) / static_cast<double>(total_);
}

// Messages complete in order and so in bunches, whose parts came long before: over a slow network
// completions of a tenth of a second are more than it can carry. So it is packets that are counted,
// whatever messages they belong to.
double Sender::acknowledged_bytes() const {
  if (flows_.size() > kMostCounted)
    return static_cast<double>(completed_ * options_.layout.message_bytes());
  double sum = 0;
  for (unsigned qp = 0; qp < flows_.size(); ++qp) {
    const openmrc_qp_counters counters = endpoint_.counters(qp);
    const std::uint64_t missing =
        counters.retransmitted + counters.packets_in_flight + counters.packets_to_resend;
    if (counters.packets_sent <= missing) continue;
    const double packet_bytes =
        static_cast<double>(counters.bytes_sent) / static_cast<double>(counters.packets_sent);
    sum += static_cast<double>(counters.packets_sent - missing) * packet_bytes;
  }
  return sum;
}

void Sender::begin_peak(std::int64_t now) {
  peak_ns_ = now;
  peak_from_bytes_ = acknowledged_bytes();
}

void Sender::note_peak(std::int64_t now) {
  if (now - peak_ns_ < kPeakNs) return;
  const double before = peak_from_bytes_;
  const auto stretch_ns = static_cast<double>(now - peak_ns_);
  begin_peak(now);
  peak_bytes_per_second_ =
      std::max(peak_bytes_per_second_, (peak_from_bytes_ - before) * 1e9 / stretch_ns);
}

// By time, the first tenth only warms up.
void Sender::measure(Watch& watch, Result& result) {
  const double warm_s = by_time() ? std::min(options_.plan.seconds * kWarmUpShare, kWarmUpMaxS) : 0;
  std::int64_t now = now_ns();
  begin_ns_ = now + static_cast<std::int64_t>(warm_s * 1e9);
  const std::int64_t end_ns = begin_ns_ + static_cast<std::int64_t>(options_.plan.seconds * 1e9);
  bool measuring = false;
  std::uint64_t first = 0;
  double cpu_s = 0;
  while (by_time() ? now < end_ns : completed_ < total_) {
    if (!measuring && now >= begin_ns_) {
      measuring = true;
      begin_ns_ = now;
      first = completed_;
      begin_peak(now);
      cpu_s = cpu_seconds();
    }
    post_all();
    reap();
    now = now_ns();
    if (measuring) note_peak(now);
    if (measuring && options_.waits != nullptr) options_.waits->look(now);
    if (!watch.keep_going(now, completed_, share(now))) {
      result.interrupted = true;
      break;
    }
  }
  if (!measuring) return;  // who is interrupted while it warms up has measured nothing
  result.seconds = static_cast<double>(now - begin_ns_) / 1e9;
  result.messages = completed_ - first;
  result.cpu_s = cpu_seconds() - cpu_s;
}

void Sender::drain(Watch& watch) {
  os::Interrupt::clear();
  for (;;) {
    std::uint64_t under_way = 0;
    for (unsigned qp = 0; qp < flows_.size(); ++qp) {
      const Flow& flow = flows_[qp];
      if (flow.completed == flow.posted) continue;
      under_way += flow.posted - flow.completed;
      if (flow.signaled < flow.posted && allowed(qp) > flow.posted) post(qp, 1, true);
    }
    if (under_way == 0) return;
    reap();
    const std::int64_t now = now_ns();
    watch.keep_going(now, completed_, 1);
    watch.note_late(now, under_way);
  }
}

Result Sender::run(Watch& watch) {
  Result result;
  result.message_bytes = options_.layout.message_bytes();
  measure(watch, result);
  drain(watch);
  result.peak_bits_per_second = std::max(8.0 * peak_bytes_per_second_, result.bits_per_second());
  return result;
}

ImmediateReceiver::ImmediateReceiver(Endpoint& endpoint, const Plan& plan, const Layout& layout,
                                     const Pattern& expected, std::span<const std::byte> area,
                                     std::span<std::byte> credits)
    : endpoint_(endpoint),
      plan_(plan),
      layout_(layout),
      expected_(expected),
      area_(area),
      credits_(credits),
      flows_(plan.qps) {}

void ImmediateReceiver::open() {
  for (unsigned qp = 0; qp < flows_.size(); ++qp)
    grant(qp);
}

void ImmediateReceiver::grant(unsigned qp) {
  Flow& flow = flows_[qp];
  const std::uint64_t room = flow.taken + layout_.slots();
  if (flow.granting || room - flow.granted < std::max(layout_.slots() / 2, 1U)) return;
  const auto word = credits_.subspan(qp * Sender::kCreditBytes, sizeof(room));
  std::memcpy(word.data(), &room, sizeof(room));
  Write write;
  write.bytes = word;
  write.remote_address = endpoint_.peer().memory + qp * Sender::kCreditBytes;
  endpoint_.post(qp, {&write, 1});
  flow.granted = room;
  flow.granting = true;
}

void ImmediateReceiver::take(const ibv_wc& wc) {
  const unsigned qp = Endpoint::qp_of(wc);
  Flow& flow = flows_.at(qp);
  const std::uint64_t message = flow.taken++;
  ++taken_;
  endpoint_.post_receives(qp, 1);
  if (wrong_.empty() && ntohl(wc.imm_data) != static_cast<std::uint32_t>(message))
    wrong_ = fmt::format("queue pair {}: immediate {} came when {} was due", qp, ntohl(wc.imm_data),
                         message);
  if (!wrong_.empty() || !plan_.verify) return;
  const auto found = layout_.message_in(area_, qp, message);
  wrong_ = plan_.verify_all ? expected_.difference(qp, message, found)
                            : expected_.sampled_difference(qp, message, found);
}

void ImmediateReceiver::step() {
  const auto found = endpoint_.poll_receives();
  patience_.looked(!found.empty());
  for (const ibv_wc& wc : found)
    take(wc);
  for (const ibv_wc& wc : endpoint_.poll_sends())
    flows_.at(Endpoint::qp_of(wc)).granting = false;
  for (unsigned qp = 0; qp < flows_.size(); ++qp)
    grant(qp);
}

void ImmediateReceiver::run(const collective::Exchange& exchange) {
  for (unsigned steps = 0;; ++steps) {
    step();
    if (steps % kStepsPerLook != 0) continue;
    if (exchange.readable()) return;
    if (os::Interrupt::raised()) throw Failure("interrupted", FailureKind::kInterrupted);
  }
}

void ImmediateReceiver::finish(const std::vector<std::uint64_t>& counts, double timeout_s) {
  const std::int64_t deadline = now_ns() + static_cast<std::int64_t>(timeout_s * 1e9);
  const auto done = [&] {
    for (unsigned qp = 0; qp < flows_.size(); ++qp) {
      if (flows_[qp].taken < counts[qp] || flows_[qp].granting) return false;
    }
    return true;
  };
  while (!done()) {
    step();
    if (now_ns() > deadline)
      throw Failure("not every message brought its immediate", FailureKind::kWrongData);
  }
}

}  // namespace mrc::tool::perf
