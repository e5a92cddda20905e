// Sends the probes of one host, at a bounded rate.
#pragma once

#include <cstdint>
#include <vector>

#include "controller/session.h"
#include "fabric/diagnosis.h"
#include "fabric/routing.h"

namespace mrc::controller {

struct ProbeSettings {
  double rate = 1'000;   // probes a second of this host, over all its loops
  double timeout_s = 2;  // a probe without an answer for so long is lost
};

class Prober {
 public:
  // All loops must be of the host whose device `session` is. They stay valid with this object.
  Prober(const Session& session, const fabric::Routing& routing,
         const std::vector<fabric::Loop>& loops, const ProbeSettings& settings);

  // Each loop `rounds` times; one that has been silent for a while, now and then only. Returns when
  // every probe is answered or lost. CtlError when the device refuses.
  std::vector<fabric::LoopResult> run(unsigned rounds);
  // Rounds in that time.
  unsigned rounds_in(double seconds) const;

 private:
  struct Target {
    fabric::Loop loop;
    mrc_ctl_ep_req request{};
    std::uint64_t sent = 0;
    std::uint64_t answered = 0;
    unsigned silent = 0;  // lost in a row
  };
  class Run;

  const Session* session_;
  ProbeSettings settings_;
  std::vector<Target> targets_;
};

}  // namespace mrc::controller
