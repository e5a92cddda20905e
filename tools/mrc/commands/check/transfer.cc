#include "commands/check/transfer.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "commands/perf/audience.h"
#include "commands/perf/session.h"
#include "failure.h"

namespace mrc::tool::check {
namespace {

using doctor::Findings;
using doctor::Verdict;
using Json = nlohmann::ordered_json;

// Little is in flight, so that buffers of a sound host never run over: what is lost is the fault of
// cables, ports and switches. A check is no race for the last bit per second.
constexpr std::uint64_t kMessageBytes = 16'384;
constexpr unsigned kDepth = 4;

class Collector final : public perf::Audience {
 public:
  void add(const perf::Result& result) override { result_ = result; }
  const std::optional<perf::Result>& result() const { return result_; }

 private:
  std::optional<perf::Result> result_;
};

perf::Options perf_options(const TransferOptions& options) {
  perf::Options all;
  all.plan = plan_of(options);
  all.host = options.host;
  all.device = options.device;
  all.tcp_port = options.port;
  all.timeout_s = options.timeout_s;
  all.longest_silence_s = options.seconds + 3 * options.timeout_s;
  all.losses = true;
  return all;
}

double gigabits(double bits_per_second) { return bits_per_second / 1e9; }

void judge(const TransferOptions& options, const perf::Result& result, Findings& findings) {
  const std::string& host = options.host;
  findings.push_back(
      {result.messages > 0 ? Verdict::kOk : Verdict::kBroken, "transfer with " + host,
       fmt::format("{:.2f} Gb/s there, {:.2f} Gb/s back, {}", gigabits(result.bits_per_second()),
                   gigabits(result.peer_bits_per_second),
                   result.verified ? "all data right" : "data not compared"),
       result.messages > 0 ? "" : "nothing arrived: see `mrc doctor --peer` for the way there"});
  if (result.losses) judge_losses(*result.losses, "to " + host, options.most_loss, findings);
  if (result.peer_losses)
    judge_losses(*result.peer_losses, "from " + host, options.most_loss, findings);
}

Json losses_json(const std::optional<perf::Losses>& losses) {
  if (!losses) return {};
  Json pairs = Json::array();
  for (const perf::QpLosses& qp : losses->queue_pairs)
    pairs.push_back({{"number", qp.number},
                     {"packets_sent", qp.packets},
                     {"retransmitted", qp.resent},
                     {"lost", qp.lost},
                     {"lost_by_path_order", qp.by_path_order},
                     {"lost_by_time", qp.by_time},
                     {"lost_by_timeout", qp.by_timeout},
                     {"spurious", qp.spurious},
                     {"trimmed", qp.trimmed},
                     {"refused", qp.refused},
                     {"paths", qp.paths},
                     {"paths_bad", qp.paths_bad}});
  Json planes = Json::array();
  for (const perf::PlaneLosses& plane : losses->planes)
    planes.push_back({{"plane", plane.plane}, {"lost", plane.lost}});
  return {{"queue_pairs", pairs}, {"planes", planes}};
}

}  // namespace

perf::Plan plan_of(const TransferOptions& options) {
  perf::Plan plan;
  plan.sizes = {kMessageBytes};
  plan.seconds = options.seconds;
  plan.qps = options.qps;
  plan.depth = kDepth;
  plan.both_ways = true;
  return plan;
}

bool is_plan_of_check(const perf::Plan& plan) {
  return plan.test == perf::Test::kWriteBandwidth && plan.sizes.size() == 1 &&
         plan.sizes.front() == kMessageBytes && plan.seconds > 0 && plan.seconds <= kMaxSeconds &&
         plan.qps <= kMaxQps && plan.depth == kDepth && plan.both_ways;
}

std::optional<Transfer> run_transfer(const TransferOptions& options, Findings& findings,
                                     ExitCode& code) {
  Collector collector;
  const perf::Options all = perf_options(options);
  try {
    perf::Session session(all, collector);
    const ExitCode ended = session.run();
    if (ended != ExitCode::kOk) code = ended;
  } catch (const Failure& failure) {
    if (failure.kind() == FailureKind::kInterrupted) throw;
    const bool wrong = failure.kind() == FailureKind::kWrongData;
    if (wrong) code = ExitCode::kWrongData;
    findings.push_back(
        {Verdict::kBroken, "transfer with " + options.host, failure.what(),
         wrong ? "run no job here: memory or the network changes data; `mrc perf write_bw` shows "
                 "it again"
               : "`mrc doctor --serve` there and `mrc doctor --peer` here look at the way"});
  }
  if (!collector.result()) return std::nullopt;
  if (code != ExitCode::kWrongData) judge(options, *collector.result(), findings);
  return Transfer{.result = *collector.result(), .qps = options.qps};
}

Json to_json(const Transfer& transfer) {
  const perf::Result& result = transfer.result;
  return {{"seconds", result.seconds},
          {"qps", transfer.qps},
          {"messages", result.messages},
          {"message_bytes", result.message_bytes},
          {"verified", result.verified},
          {"bandwidth_gbps", gigabits(result.bits_per_second())},
          {"peer_bandwidth_gbps", gigabits(result.peer_bits_per_second)},
          {"sent", losses_json(result.losses)},
          {"received", losses_json(result.peer_losses)}};
}

}  // namespace mrc::tool::check
