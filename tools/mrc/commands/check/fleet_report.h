// What `mrc check --hosts` prints: a line per problem, a table of hosts, a verdict; or JSON.
#pragma once

#include "commands/check/fleet.h"
#include "commands/check/gate.h"

namespace mrc::tool::check {

ExitCode conclude(const FleetReport& report, const Manner& manner, bool json);

}  // namespace mrc::tool::check
