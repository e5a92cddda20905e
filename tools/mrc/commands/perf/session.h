// A whole run of `mrc perf`, from the greeting to the last size, on either side.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "collective/exchange.h"
#include "commands/perf/audience.h"
#include "commands/perf/endpoint.h"
#include "commands/perf/memory.h"
#include "commands/perf/plan.h"
#include "commands/perf/protocol.h"
#include "exit_code.h"
#include "terminal.h"

namespace mrc::tool::perf {

class Session {
 public:
  Session(const Options& options, Audience& audience);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Throws Failure, after telling the peer where there is one.
  ExitCode run();
  // Serves a client that is there already and has said `hello`. Throws as run() does.
  ExitCode answer(collective::Exchange client, const nlohmann::json& hello);

 private:
  // What a side has found out about one size.
  struct Outcome {
    Result result;
    std::vector<std::uint64_t> counts;  // messages that it sent, per queue pair
    std::string wrong;                  // about data that it received
    double cpu_s = 0;                   // server: from the start until the client was done
  };

  template <typename Part>
  ExitCode telling_the_peer(const Part& part);
  ExitCode run_client();
  ExitCode run_server();
  void greet();
  void wait_for_client();
  void be_greeted(const nlohmann::json& message);
  void set_up(std::uint64_t seed);
  EndpointOptions endpoint_options(const Plan& plan) const;
  WatchOptions watch_options(std::uint64_t message_bytes) const;
  void begin_counting();
  Losses count_losses(const std::vector<openmrc_qp_counters>& counted) const;
  void count_arrivals(Losses& losses) const;
  // Where single messages and credits leave from; bandwidth takes stretches of the pattern itself.
  std::span<std::byte> source() const { return own_messages_->bytes(); }

  ExitCode measure(std::uint64_t size);
  Outcome client_part(const Layout& layout);
  ExitCode serve(std::uint64_t size);
  Outcome server_part(const Layout& layout, nlohmann::json& end);
  Outcome answer_pings(const Layout& layout, nlohmann::json& end);
  Outcome send_writes(const Layout& layout, std::span<const std::byte> credits);

  Options options_;
  Audience& audience_;
  Terminal terminal_;
  std::optional<collective::Exchange> exchange_;
  std::optional<Area> target_;        // the peer writes here
  std::optional<Area> own_messages_;  // see source()
  std::optional<Pattern> own_;
  std::optional<Pattern> peers_;
  std::vector<PlaneLosses> planes_before_;  // as they were when the measurement began
  std::optional<Endpoint> endpoint_;        // last: it must go before the memory it uses
};

}  // namespace mrc::tool::perf
