// What `mrc check --json` on another host printed. It came over the network from a host that may be
// broken or somebody else's: everything is bounded and checked, and shown without control
// characters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "commands/doctor/check.h"

namespace mrc::tool::check {

struct RemoteTransfer {
  double gbps = 0;
  double peer_gbps = 0;
  std::uint64_t packets = 0;  // both ways
  std::uint64_t lost = 0;
};

struct RemoteAnswer {
  std::string version;  // "mrc 0.2.0"
  doctor::Findings findings;
  std::optional<RemoteTransfer> transfer;
};

// Nothing when it is no such answer. What a shell over there says before it does not count.
std::optional<RemoteAnswer> read_answer(const std::string& output);
// The port that `mrc check --serve --json` told in its line; nothing before that has come.
std::optional<std::uint16_t> read_port(const std::string& output);

// The first line of what somebody else wrote, fit for a terminal; the last one that is not empty.
std::string shown(const std::string& text);
std::string last_shown(const std::string& text);

}  // namespace mrc::tool::check
