// What a running lab says about itself, as numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/control.h"

namespace mrc::tool {

struct LabStatus {
  struct Plane {
    std::uint64_t bytes = 0;  // over all links
    std::uint64_t dropped = 0;
    std::uint64_t trimmed = 0;
    std::uint64_t marked = 0;
  };
  struct Program {
    unsigned host = 0;
    std::uint64_t pid = 0;  // of `mrc lab exec`; what it runs is its child
  };
  unsigned hosts = 0;
  std::vector<Plane> planes;
  std::vector<Program> programs;
  // How long data was still sent to a link after it went down, the worst of those that are down;
  // below 0: to none.
  double offered_after_ms = -1;
};

// `text` is the answer to the verb status (lab/daemon.h).
LabStatus parse_status(const std::string& text);
// Asks for it; throws Failure when the lab does not answer.
LabStatus ask_status(lab::ControlClient& client);

}  // namespace mrc::tool
