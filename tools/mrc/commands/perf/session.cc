#include "commands/perf/session.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "commands/perf/latency.h"
#include "commands/perf/memory.h"
#include "commands/perf/transfer.h"
#include "commands/perf/watch.h"
#include "failure.h"
#include "spoken_dialect.h"

namespace mrc::tool::perf {
namespace {

using nlohmann::json;

std::uint64_t sum(const std::vector<std::uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

}  // namespace

Session::Session(const Options& options, Audience& audience)
    : options_(options), audience_(audience), terminal_(stderr) {}

Session::~Session() = default;

template <typename Part>
ExitCode Session::telling_the_peer(const Part& part) {
  try {
    return part();
  } catch (const Failure& failure) {
    if (exchange_) {
      try {
        exchange_->send({{"error", failure.what()}});
      } catch (const Failure&) {
        // It is gone as well; the first failure is the one to tell about.
      }
    }
    throw;
  }
}

ExitCode Session::run() {
  return telling_the_peer([this] {
    if (!options_.is_server()) return run_client();
    wait_for_client();
    be_greeted(exchange_->receive(options_.timeout_s));
    return run_server();
  });
}

ExitCode Session::answer(collective::Exchange client, const json& hello) {
  exchange_.emplace(std::move(client));
  return telling_the_peer([this, &hello] {
    be_greeted(hello);
    return run_server();
  });
}

EndpointOptions Session::endpoint_options(const Plan& plan) const {
  EndpointOptions options;
  options.device = {.name = options_.device,
                    .gid_index = options_.gid_index,
                    .mtu = options_.mtu,
                    .dialect = spoken_dialect(options_.device)};
  options.qps = plan.qps;
  options.send_depth = std::max(plan.depth, 2 * PingPong::kSendSlots);
  options.receive_depth = plan.test == Test::kWriteBandwidth ? 1 : plan.depth;
  options.profiles = {.ev = options_.ev_profile, .cc = options_.cc_profile};
  return options;
}

WatchOptions Session::watch_options(std::uint64_t message_bytes) const {
  WatchOptions options;
  options.timeout_s = options_.timeout_s;
  options.report_every_s = options_.report_every_s;
  options.suspicion = endpoint_->suspicion(exchange_->peer());
  options.peer_may_speak = options_.plan.both_ways && options_.is_server();
  options.on_interval = [this, message_bytes](const Interval& interval) {
    audience_.interval(interval, message_bytes);
  };
  return options;
}

void Session::set_up(std::uint64_t seed) {
  const Plan& plan = options_.plan;
  const std::uint64_t largest = *std::max_element(plan.sizes.begin(), plan.sizes.end());
  const std::uint64_t own_seed = options_.is_server() ? seed + 1 : seed;
  own_.emplace(own_seed, largest);
  peers_.emplace(options_.is_server() ? seed : seed + 1, largest);
  target_.emplace(std::max(area_bytes(plan), plan.qps * Sender::kCreditBytes));
  own_messages_.emplace(std::max(PingPong::source_bytes(plan), plan.qps * Sender::kCreditBytes));
  endpoint_.emplace(endpoint_options(plan));
  const bool separate = plan.test == Test::kWriteLatency ||
                        (plan.test == Test::kWriteImmediate && options_.is_server());
  endpoint_->register_memory(target_->bytes(), separate ? source() : own_->reference());
  if (plan.test != Test::kWriteBandwidth) {
    for (unsigned qp = 0; qp < plan.qps; ++qp)
      endpoint_->post_receives(qp, plan.depth);
  }
}

void Session::greet() {
  const std::uint64_t seed = std::random_device{}();
  set_up(seed);
  const LongWait wait("waiting for " + options_.host);
  exchange_.emplace(
      collective::Exchange::connect(options_.host, options_.tcp_port, options_.timeout_s));
  exchange_->send(to_json(Hello{options_.plan, seed, endpoint_->address()}));
  const Address theirs =
      parse_answer(exchange_->receive(options_.timeout_s), options_.plan, exchange_->peer());
  endpoint_->check_peer(theirs, exchange_->peer());
  endpoint_->connect(theirs);
}

void Session::wait_for_client() {
  // Whatever is wrong with the device should show before a client comes.
  { const Endpoint trial(endpoint_options(Plan{})); }
  audience_.waiting();
  exchange_.emplace(collective::Listener(options_.tcp_port).accept(0));
}

void Session::be_greeted(const json& message) {
  const Hello hello = parse_hello(message, exchange_->peer());
  if (hello.plan.test != options_.plan.test)
    throw Failure(fmt::format("the server runs {}, the client {}", name_of(options_.plan.test),
                              name_of(hello.plan.test)));
  options_.plan = hello.plan;
  set_up(hello.seed);
  try {
    endpoint_->check_peer(hello.address, exchange_->peer());
  } catch (const Failure&) {
    exchange_->send(answer_json(endpoint_->address()));  // the client finds the same
    throw;
  }
  endpoint_->connect(hello.address);
  exchange_->send(answer_json(endpoint_->address()));
}

ExitCode Session::run_client() {
  greet();
  audience_.begin(options_.plan, *endpoint_, exchange_->peer());
  ExitCode code = ExitCode::kOk;
  for (const std::uint64_t size : options_.plan.sizes) {
    code = measure(size);
    if (code != ExitCode::kOk) break;
  }
  exchange_->send({{"bye", true}});
  return code;
}

Session::Outcome Session::send_writes(const Layout& layout, std::span<const std::byte> credits) {
  Outcome outcome;
  const WatchOptions options = watch_options(layout.message_bytes());
  Watch watch(options, *exchange_, terminal_);
  std::optional<WaitSampler> waits;
  if (options_.explain || options_.losses) {
    waits.emplace(options_.plan.qps, endpoint_->mtu(),
                  [this](unsigned qp) { return endpoint_->counters(qp); });
  }
  Sender sender(*endpoint_, {options_.plan, layout, *own_, options_.signal_every, credits,
                             waits ? &*waits : nullptr});
  outcome.result = sender.run(watch);
  std::optional<Waits> waited;
  if (waits) waited = waits->take();
  if (options_.losses) outcome.result.losses = count_losses(waited->queue_pairs);
  if (options_.explain) outcome.result.waits = std::move(waited);
  outcome.counts = sender.counts();
  return outcome;
}

Losses Session::count_losses(const std::vector<openmrc_qp_counters>& counted) const {
  Losses losses;
  const std::vector<std::uint32_t> numbers = endpoint_->address().qps;
  for (std::size_t i = 0; i < counted.size(); ++i)
    losses.queue_pairs.push_back(losses_of(numbers.at(i), counted[i]));
  return losses;
}

// Once neither side sends any more; by then a path that was taken for bad may have answered.
void Session::count_arrivals(Losses& losses) const {
  for (unsigned qp = 0; qp < losses.queue_pairs.size(); ++qp) {
    const openmrc_qp_counters counters = endpoint_->counters(qp);
    losses.queue_pairs[qp].arrived = counters.packets_received + counters.duplicates;
    losses.queue_pairs[qp].paths_bad = counters.paths_assumed_bad;
  }
  add_planes(endpoint_->device_name(), planes_before_, losses);
}

// Before either side sends.
void Session::begin_counting() {
  if (options_.losses) planes_before_ = plane_counts(endpoint_->device_name());
}

Session::Outcome Session::client_part(const Layout& layout) {
  switch (options_.plan.test) {
    case Test::kWriteBandwidth:
      return send_writes(layout, {});
    case Test::kWriteImmediate:
      return send_writes(layout, target_->bytes());
    case Test::kWriteLatency:
      break;
  }
  Outcome outcome;
  const WatchOptions options = watch_options(layout.message_bytes());
  Watch watch(options, *exchange_, terminal_);
  PingPong ping_pong(*endpoint_, layout, *own_, *peers_, target_->bytes(), source(),
                     options_.plan.spin);
  outcome.result = ping_pong.run(options_.plan, watch);
  ping_pong.drain(options_.timeout_s);
  outcome.counts = {outcome.result.messages};
  if (options_.plan.verify) outcome.wrong = ping_pong.check();
  return outcome;
}

ExitCode Session::measure(std::uint64_t size) {
  const Plan& plan = options_.plan;
  const Layout layout(plan, size);
  prepare_area(target_->bytes(), layout);
  if (plan.test == Test::kWriteImmediate)
    std::ranges::fill(target_->bytes().first(plan.qps * Sender::kCreditBytes), std::byte{0});
  begin_counting();
  exchange_->send({{"begin", size}});
  exchange_->receive(options_.timeout_s);
  Outcome outcome = client_part(layout);
  json end = {{"counts", outcome.counts}, {"result", to_json(outcome.result)}};
  exchange_->send(end);
  const json answer = exchange_->receive(options_.longest_silence_s);
  const std::string& peer = exchange_->peer();
  Result& result = outcome.result;
  const auto sent = static_cast<double>(std::max<std::uint64_t>(sum(outcome.counts), 1));
  result.peer_cpu_s =
      read_real(answer, "cpu_s", peer) * static_cast<double>(result.messages) / sent;
  result.peer_bits_per_second = read_real(answer, "bits_per_second", peer);
  if (plan.both_ways && plan.verify)
    outcome.wrong = check_area(target_->bytes(), layout, *peers_, parse_counts(answer, plan, peer));
  if (result.losses && answer.contains("losses")) {
    result.peer_losses = parse_losses(answer.at("losses"), plan, peer);
    count_arrivals(*result.losses);
    settle(*result.losses, *result.peer_losses);
  }
  std::string wrong = read_text(answer, "wrong", peer);
  if (wrong.empty()) wrong = outcome.wrong;
  result.verified = plan.verify && wrong.empty();
  audience_.add(result);
  if (!wrong.empty()) {
    audience_.data_wrong(wrong);
    throw Failure("data is wrong: " + wrong, FailureKind::kWrongData);
  }
  return result.interrupted ? ExitCode::kInterrupted : ExitCode::kOk;
}

ExitCode Session::run_server() {
  audience_.begin(options_.plan, *endpoint_, exchange_->peer());
  for (;;) {
    const json message = exchange_->receive(options_.longest_silence_s);
    if (message.contains("bye")) return ExitCode::kOk;
    const std::uint64_t size = read_number(message, "begin", kMaxBytes, exchange_->peer());
    const auto& sizes = options_.plan.sizes;
    if (std::find(sizes.begin(), sizes.end(), size) == sizes.end())
      throw Failure(fmt::format("{} wants a size that was not agreed on", exchange_->peer()));
    const ExitCode code = serve(size);
    if (code != ExitCode::kOk) return code;
  }
}

Session::Outcome Session::answer_pings(const Layout& layout, json& end) {
  Outcome outcome;
  outcome.counts = {0};
  const double cpu_s = cpu_seconds();
  PingPong ping_pong(*endpoint_, layout, *own_, *peers_, target_->bytes(), source(),
                     options_.plan.spin);
  exchange_->send({{"ready", true}});
  ping_pong.answer(*exchange_, options_.plan.verify);
  end = exchange_->receive(options_.longest_silence_s);
  outcome.cpu_s = cpu_seconds() - cpu_s;
  ping_pong.drain(options_.timeout_s);
  if (options_.plan.verify) outcome.wrong = ping_pong.check();
  return outcome;
}

Session::Outcome Session::server_part(const Layout& layout, json& end) {
  const Plan& plan = options_.plan;
  const std::string& peer = exchange_->peer();
  Outcome outcome;
  outcome.counts.assign(plan.qps, 0);
  const double cpu_s = cpu_seconds();
  std::optional<ImmediateReceiver> receiver;
  if (plan.test == Test::kWriteImmediate) {
    receiver.emplace(*endpoint_, plan, layout, *peers_, target_->bytes(), source());
    receiver->open();
  }
  begin_counting();
  exchange_->send({{"ready", true}});
  if (plan.both_ways) {
    outcome = send_writes(layout, {});
  } else if (receiver) {
    receiver->run(*exchange_);
  }
  end = exchange_->receive(options_.longest_silence_s);
  outcome.cpu_s = cpu_seconds() - cpu_s;
  const std::vector<std::uint64_t> counts = parse_counts(end, plan, peer);
  if (receiver) receiver->finish(counts, options_.timeout_s);
  if (!plan.verify) return outcome;
  if (receiver) outcome.wrong = receiver->wrong();
  if (outcome.wrong.empty()) outcome.wrong = check_area(target_->bytes(), layout, *peers_, counts);
  return outcome;
}

ExitCode Session::serve(std::uint64_t size) {
  const Layout layout(options_.plan, size);
  prepare_area(target_->bytes(), layout);
  json end;
  const bool latency = options_.plan.test == Test::kWriteLatency;
  Outcome outcome = latency ? answer_pings(layout, end) : server_part(layout, end);
  json answer = {{"wrong", outcome.wrong},
                 {"cpu_s", outcome.cpu_s},
                 {"counts", outcome.counts},
                 {"bits_per_second", outcome.result.bits_per_second()}};
  if (outcome.result.losses) {
    count_arrivals(*outcome.result.losses);
    answer["losses"] = to_json(*outcome.result.losses);
  }
  exchange_->send(answer);
  Result shown = parse_result(end, exchange_->peer());
  shown.message_bytes = size;
  shown.peer_bits_per_second = outcome.result.bits_per_second();
  shown.cpu_s = outcome.cpu_s;
  shown.verified = options_.plan.verify && outcome.wrong.empty();
  audience_.add(shown);
  if (outcome.wrong.empty()) return ExitCode::kOk;
  audience_.data_wrong(outcome.wrong);
  throw Failure("data is wrong: " + outcome.wrong, FailureKind::kWrongData);
}

}  // namespace mrc::tool::perf
