#include "commands/check/serve.h"

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "collective/exchange.h"
#include "commands/check/transfer.h"
#include "commands/doctor/responder.h"
#include "commands/perf/audience.h"
#include "commands/perf/protocol.h"
#include "commands/perf/session.h"
#include "failure.h"
#include "os/clock.h"
#include "os/interrupt.h"

namespace mrc::tool::check {
namespace {

using collective::Exchange;
using nlohmann::json;

constexpr double kPatienceS = 5;  // with a visitor that has connected
constexpr double kStepS = 0.5;

void announce(const node::DeviceConfig& config, const ServeOptions& options, const std::string& gid,
              std::uint16_t port) {
  if (options.json) {
    const nlohmann::ordered_json line = {
        {"schema", "mrc.check.serve"}, {"version", 1}, {"program", "mrc " MRC_VERSION},
        {"device", config.name},       {"gid", gid},   {"port", port}};
    fmt::print("{}\n", line.dump());
  } else {
    // Cables of raw frames carry no TCP.
    const std::string place = config.backend == node::BackendKind::kUdp ? gid : "HOST";
    fmt::print("{} ({}) answers at TCP port {}; on the other host: mrc check --peer {}{}\n",
               config.name, gid, port, place,
               port == kCheckPort ? "" : fmt::format(" -p {}", port));
  }
  std::fflush(stdout);
}

// Whoever started us over ssh is gone when nobody reads any more what we say.
bool reader_is_gone() {
  pollfd entry{STDOUT_FILENO, 0, 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLERR | POLLHUP)) != 0;
}

Exchange accept(const collective::Listener& listener, double wait_s) {
  const TimeNs start = os::monotonic_now();
  for (;;) {
    try {
      return listener.accept(kStepS);
    } catch (const Failure& failure) {
      if (failure.kind() != FailureKind::kTimeout) throw;
    }
    if (reader_is_gone()) throw Failure("whoever started this is gone");
    if (wait_s > 0 && static_cast<double>(os::monotonic_now() - start) / 1e9 > wait_s)
      throw Failure(fmt::format("nobody connected for {:g} s", wait_s), FailureKind::kTimeout);
  }
}

void complain(const Failure& failure) { fmt::print(stderr, "mrc check: {}\n", failure.what()); }

// The client says what is wrong with it; here it is over either way.
void transfer(Exchange visitor, const json& hello, const node::DeviceConfig& config,
              const ServeOptions& options) {
  const std::string name = visitor.peer();
  const perf::Plan plan = perf::parse_hello(hello, name).plan;
  if (!is_plan_of_check(plan)) {
    visitor.send({{"error", "mrc check serves transfers of mrc check; run mrc perf for others"}});
    throw Failure(name + " asks for a transfer that is none of mrc check");
  }
  perf::Options all;
  all.device = config.name;
  all.timeout_s = options.timeout_s;
  all.longest_silence_s = plan.seconds + 3 * options.timeout_s;
  all.losses = true;
  perf::Audience nobody;
  try {
    perf::Session(all, nobody).answer(std::move(visitor), hello);
  } catch (const Failure& failure) {
    if (failure.kind() == FailureKind::kInterrupted) throw;
    complain(failure);
  }
}

// Whether that was a transfer.
bool answer(Exchange visitor, const doctor::Responder& responder, const node::DeviceConfig& config,
            const ServeOptions& options) {
  const json first = visitor.receive(kPatienceS);
  if (doctor::Responder::is_question(first)) {
    responder.answer(visitor);
    return false;
  }
  if (!first.contains("mrc_perf"))
    throw Failure(fmt::format("{} does not speak our protocol", visitor.peer()));
  transfer(std::move(visitor), first, config, options);
  return true;
}

}  // namespace

ExitCode serve(const node::DeviceConfig& config, const ServeOptions& options) {
  const doctor::Responder responder(config);
  const collective::Listener listener(options.port);
  announce(config, options, responder.gid(), listener.port());
  while (!os::Interrupt::raised()) {
    std::optional<Exchange> visitor;
    try {
      visitor.emplace(accept(listener, options.wait_s));
      if (!options.json) fmt::print("{} looks at this host\n", visitor->peer());
      std::fflush(stdout);
    } catch (const Failure& failure) {
      if (failure.kind() == FailureKind::kInterrupted) break;
      throw;
    }
    try {
      if (answer(std::move(*visitor), responder, config, options) && options.once) break;
    } catch (const Failure& failure) {
      if (failure.kind() == FailureKind::kInterrupted) break;
      complain(failure);  // the next one may do better
    }
  }
  return ExitCode::kOk;
}

}  // namespace mrc::tool::check
