#include "perf/immediate_receiver.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "failure.h"
#include "os/interrupt.h"
#include "perf/sender.h"
#include "perf/watch.h"

namespace mrc::tool::perf {
namespace {

constexpr unsigned kStepsPerLook = 256;  // looking at the TCP connection is a system call

}  // namespace

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
