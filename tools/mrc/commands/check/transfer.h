// The transfer of `mrc check --peer`: short, verified, both ways, and what was lost in it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "commands/doctor/check.h"
#include "commands/perf/plan.h"
#include "exit_code.h"

namespace mrc::tool::check {

constexpr unsigned kMaxQps = 64;
constexpr double kMaxSeconds = 3'600;

struct TransferOptions {
  std::string host;
  std::uint16_t port = 0;
  std::string device;
  double seconds = 3;
  unsigned qps = 4;
  double most_loss = 0.001;  // share of the packets of a queue pair
  double timeout_s = 10;     // without anything moving
};

struct Transfer {
  perf::Result result;
  unsigned qps = 0;
};

// The plan of it, and whether a client's plan is one: others have no business with `--serve`.
perf::Plan plan_of(const TransferOptions& options);
bool is_plan_of_check(const perf::Plan& plan);

// Nothing when nothing was transferred. What is wrong is found either way; `code` becomes that of
// data that is wrong, or of an interrupt.
std::optional<Transfer> run_transfer(const TransferOptions& options, doctor::Findings& findings,
                                     ExitCode& code);

// One finding for each queue pair that lost more than that share, and for each plane with paths
// that are bad. `way` is from whom to whom.
void judge_losses(const perf::Losses& losses, const std::string& way, double most_loss,
                  doctor::Findings& findings);

nlohmann::ordered_json to_json(const Transfer& transfer);

}  // namespace mrc::tool::check
