// What `mrc check` says: one line per problem and a verdict, or one JSON object.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "commands/check/transfer.h"
#include "commands/doctor/check.h"
#include "exit_code.h"

namespace mrc::tool::check {

struct Manner {
  bool strict = false;   // what is slow is a problem, too
  bool verbose = false;  // show what is well
};

bool is_problem(const doctor::Finding& finding, bool strict);

// Problems, and other things that are slow.
struct Tally {
  std::size_t problems = 0;
  std::size_t slow = 0;

  void add(const doctor::Findings& findings, bool strict);
};

// Prints a line for each finding that is to be shown, `whose` before it.
void print_findings(const doctor::Findings& findings, const Manner& manner,
                    const std::string& whose);
// "check: ok", "check: 2 problems", `where` after that; after Ctrl-C that there is no verdict.
void print_verdict(const Tally& tally, bool interrupted, const std::string& where);

// Of one host. `code` is what the transfer ended with.
ExitCode conclude(const doctor::Findings& findings, const std::optional<Transfer>& transfer,
                  const Manner& manner, bool json, ExitCode code);

}  // namespace mrc::tool::check
