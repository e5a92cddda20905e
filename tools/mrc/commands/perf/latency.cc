#include "commands/perf/latency.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "failure.h"
#include "os/interrupt.h"

namespace mrc::tool::perf {
namespace {

constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kMaxSamples = std::size_t{1} << 22;
constexpr unsigned kSpinsPerLook = 1'024;  // looking at the TCP connection is a system call
// Messages up to here are compared whole as they come, larger ones at some places: comparing is in
// the way of the answer.
constexpr std::size_t kCompareBytes = 1'024;
// So often a message may be looked at that is complete by its last byte but not by the others.
constexpr unsigned kTornLooks = 1'000'000;

std::size_t stride_of(std::uint64_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

// The last byte tells which message has arrived; it never is what was there before.
std::byte stamp_of(std::uint64_t message) { return static_cast<std::byte>(message + 1); }

}  // namespace

std::size_t PingPong::source_bytes(const Plan& plan) {
  return kSendSlots * stride_of(*std::max_element(plan.sizes.begin(), plan.sizes.end()));
}

PingPong::PingPong(Endpoint& endpoint, const Layout& layout, const Pattern& own,
                   const Pattern& peers, std::span<const std::byte> area,
                   std::span<std::byte> source, bool spin)
    : endpoint_(endpoint),
      layout_(layout),
      own_(own),
      peers_(peers),
      area_(area),
      source_(source),
      immediates_(layout.message_bytes() > endpoint.mtu()),
      spin_(spin) {}

void PingPong::reap() {
  for (const ibv_wc& wc : endpoint_.poll_sends())
    completed_ = Endpoint::message_of(wc) + 1;
}

void PingPong::send() {
  while (sent_ - completed_ >= kSendSlots)
    reap();
  const std::uint64_t bytes = layout_.message_bytes();
  const auto place = source_.subspan(sent_ % kSendSlots * stride_of(bytes), bytes);
  const auto content = own_.message(0, sent_, bytes);
  std::memcpy(place.data(), content.data(), bytes);
  place.back() = stamp_of(sent_);
  Write write;
  write.message = sent_;
  write.bytes = place;
  write.remote_address = endpoint_.peer().memory + layout_.offset_of(0, sent_);
  write.signaled = (sent_ + 1) % (kSendSlots / 4) == 0;
  if (write.signaled) signaled_ = sent_ + 1;
  if (immediates_) write.immediate = static_cast<std::uint32_t>(sent_);
  endpoint_.post(0, {&write, 1});
  ++sent_;
}

// A message of one packet is there when its last byte is. The bytes before it may be on their way
// through the caches for a moment; a program waits for them as we do.
bool PingPong::arrived_in_memory(bool verify) {
  if (!spin_) reap();
  const auto found = layout_.message_in(area_, 0, received_);
  const void* const last = &found.back();
  if (std::byte{__atomic_load_n(static_cast<const unsigned char*>(last), __ATOMIC_ACQUIRE)} !=
      stamp_of(received_))
    return false;
  if (!verify || found.size() > kCompareBytes) return true;
  const auto content = found.first(found.size() - 1);
  const auto expected = peers_.message(0, received_, content.size());
  if (std::memcmp(expected.data(), content.data(), content.size()) == 0) {
    torn_ = 0;
    return true;
  }
  if (++torn_ < kTornLooks) return false;
  wrong_ = peers_.difference(0, received_, content);
  return true;
}

bool PingPong::arrived_by_immediate(bool verify) {
  reap();
  const auto completions = endpoint_.poll_receives();
  if (completions.empty()) return false;
  endpoint_.post_receives(0, static_cast<unsigned>(completions.size()));
  const auto found = layout_.message_in(area_, 0, received_);
  if (completions.size() > 1 ||
      ntohl(completions.front().imm_data) != static_cast<std::uint32_t>(received_)) {
    wrong_ = fmt::format("message {}: immediate {} came instead", received_,
                         ntohl(completions.front().imm_data));
  } else if (verify) {
    wrong_ = peers_.sampled_difference(0, received_, found.first(found.size() - 1));
  }
  return true;
}

bool PingPong::arrived(bool verify) {
  const bool found = immediates_ ? arrived_by_immediate(verify) : arrived_in_memory(verify);
  patience_.looked(found);
  if (!found) return false;
  ++received_;
  return true;
}

// No completion may be left over for the next size.
void PingPong::drain(double timeout_s) {
  const std::int64_t deadline = now_ns() + static_cast<std::int64_t>(timeout_s * 1e9);
  while (completed_ < signaled_) {
    reap();
    if (now_ns() > deadline)
      throw Failure("the last messages do not complete", FailureKind::kTimeout);
  }
}

std::string PingPong::check() const {
  if (!wrong_.empty() || received_ == 0) return wrong_;
  const std::uint64_t last = received_ - 1;
  if (!guard_intact(layout_.guard_in(area_, 0, last)))
    return "bytes behind the message were written to";
  const auto found = layout_.message_in(area_, 0, last);
  if (found.back() != stamp_of(last)) return fmt::format("message {} has a wrong last byte", last);
  return peers_.difference(0, last, found.first(found.size() - 1));
}

Result PingPong::run(const Plan& plan, Watch& watch) {
  Result result;
  result.message_bytes = layout_.message_bytes();
  std::vector<std::uint32_t> samples;
  samples.reserve(plan.seconds > 0 ? kMaxSamples
                                   : std::min<std::size_t>(plan.iterations, kMaxSamples));
  const double cpu_s = cpu_seconds();
  const std::int64_t begin = now_ns();
  std::int64_t now = begin;
  const std::int64_t end = begin + static_cast<std::int64_t>(plan.seconds * 1e9);
  const auto going_on = [&] { return plan.seconds > 0 ? now < end : received_ < plan.iterations; };
  const auto share = [&] {
    return plan.seconds > 0 ? static_cast<double>(now - begin) / static_cast<double>(end - begin)
                            : static_cast<double>(received_) / static_cast<double>(plan.iterations);
  };
  while (going_on() && !result.interrupted && wrong_.empty()) {
    const std::int64_t sent = now;
    send();
    for (unsigned spins = 0; !arrived(plan.verify); ++spins) {
      if (spins % kSpinsPerLook == 0 && !watch.keep_going(now_ns(), received_, share()))
        result.interrupted = true;  // once this answer is there: the peer expects an even count
    }
    now = now_ns();
    const auto one_way = static_cast<std::uint32_t>(std::min<std::int64_t>((now - sent) / 2, ~0U));
    if (samples.size() < kMaxSamples) {
      samples.push_back(one_way);
    } else {
      samples[received_ % kMaxSamples] = one_way;
    }
    if (!watch.keep_going(now, received_, share())) result.interrupted = true;
  }
  os::Interrupt::clear();
  result.messages = received_;
  result.seconds = static_cast<double>(now - begin) / 1e9;
  result.cpu_s = cpu_seconds() - cpu_s;
  result.latency = summarize(samples);
  return result;
}

void PingPong::answer(const collective::Exchange& exchange, bool verify) {
  for (unsigned spins = 0; wrong_.empty(); ++spins) {
    if (arrived(verify)) {
      send();
      spins = 0;
    } else if (spins % kSpinsPerLook == kSpinsPerLook - 1) {
      if (exchange.readable()) return;
      if (os::Interrupt::raised()) throw Failure("interrupted", FailureKind::kInterrupted);
    }
  }
}

}  // namespace mrc::tool::perf
