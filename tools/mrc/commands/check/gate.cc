#include "commands/check/gate.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "terminal.h"
#include "text.h"

namespace mrc::tool::check {

using doctor::Finding;
using doctor::Findings;
using doctor::Verdict;

bool is_problem(const Finding& finding, bool strict) {
  return finding.verdict == Verdict::kBroken || (strict && finding.verdict == Verdict::kSlow);
}

void Tally::add(const Findings& findings, bool strict) {
  for (const Finding& finding : findings) {
    if (is_problem(finding, strict)) {
      ++problems;
    } else if (finding.verdict == Verdict::kSlow) {
      ++slow;
    }
  }
}

void print_findings(const Findings& findings, const Manner& manner, const std::string& whose) {
  const Terminal terminal(stdout);
  for (const Finding& finding : findings) {
    const bool well = finding.verdict == Verdict::kOk;
    if (well && !manner.verbose) continue;
    const std::string verdict = fmt::format("{:<6}", doctor::name_of(finding.verdict));
    const std::string shown = well                                ? terminal.green(verdict)
                              : finding.verdict == Verdict::kSlow ? terminal.yellow(verdict)
                                                                  : terminal.red(verdict);
    fmt::print("{}  {}{}: {}{}{}\n", shown, whose, finding.what, finding.found,
               well || finding.fix.empty() ? "" : "; ", well ? "" : finding.fix);
  }
}

void print_verdict(const Tally& tally, bool interrupted, const std::string& where) {
  const std::string slow =
      tally.slow == 0 ? "" : ", " + counted(tally.slow, "thing is slow", "things are slow");
  const std::string problems =
      tally.problems == 0 ? "ok" : counted(tally.problems, "problem", "problems");
  // What was not looked at may be anything.
  const std::string verdict = !interrupted          ? problems
                              : tally.problems == 0 ? "interrupted, no verdict"
                                                    : "interrupted, " + problems + " until then";
  fmt::print("check: {}{}{}\n", verdict, slow, where);
}

ExitCode conclude(const Findings& findings, const std::optional<Transfer>& transfer,
                  const Manner& manner, bool json, ExitCode code) {
  Tally tally;
  tally.add(findings, manner.strict);
  if (json) {
    nlohmann::ordered_json document = {
        {"schema", "mrc.check"},         {"version", 1},
        {"program", "mrc " MRC_VERSION}, {"ok", tally.problems == 0 && code == ExitCode::kOk},
        {"problems", tally.problems},    {"findings", doctor::to_json(findings)}};
    if (transfer) document["transfer"] = to_json(*transfer);
    fmt::print("{}\n", document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    print_findings(findings, manner, {});
    print_verdict(tally, code == ExitCode::kInterrupted, {});
  }
  if (code != ExitCode::kOk) return code;
  return tally.problems == 0 ? ExitCode::kOk : ExitCode::kFailed;
}

}  // namespace mrc::tool::check
