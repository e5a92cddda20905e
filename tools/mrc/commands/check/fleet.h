// `mrc check --hosts`: every host by itself, then the hosts in pairs around a ring, over ssh.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "commands/check/host_list.h"
#include "commands/check/remote_answer.h"
#include "commands/check/transfer.h"
#include "commands/doctor/check.h"

namespace mrc::tool::check {

struct FleetOptions {
  std::vector<Host> hosts;
  bool no_file = false;              // --hosts was one word, which may have been meant as a file
  std::vector<std::string> ssh;      // words before the host's address
  std::vector<std::string> program;  // `mrc` over there
  unsigned parallel = 16;            // processes at a time
  TransferOptions transfer;          // seconds 0: no pairs
  double patience_s = 60;            // for a host to answer, beside the transfer
};

struct HostReport {
  Host host;
  bool answered = false;
  std::string version;
  doctor::Findings findings;

  bool is_sound() const;  // it can be half of a pair
};

// The first sends to the second, and back.
struct PairReport {
  std::size_t client = 0;
  std::size_t server = 0;
  doctor::Findings findings;  // none that a host by itself has
  std::optional<RemoteTransfer> transfer;
};

struct FleetReport {
  std::vector<HostReport> hosts;
  std::vector<PairReport> pairs;
  bool interrupted = false;
};

// Whatever a host does is found, not thrown; Ctrl-C ends what runs.
FleetReport check_fleet(const FleetOptions& options);

}  // namespace mrc::tool::check
