// One run: engines on a virtual network in virtual time, decided by one seed from start to end.
//
// Phases: the programs work while faults strike; then the network heals and everything posted must
// finish within a bound; then the world falls silent and all books are compared; then queue pairs
// are taken down in various ways.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "dst/adversary.h"
#include "dst/api_faults.h"
#include "dst/checker.h"
#include "dst/forger.h"
#include "dst/host.h"
#include "dst/host_faults.h"
#include "dst/model.h"
#include "dst/network.h"
#include "dst/packet_faults.h"
#include "dst/path_faults.h"
#include "dst/stage.h"
#include "dst/workload.h"

namespace mrc::dst {

struct World {
  World(std::uint64_t seed, std::FILE* log);

  // Throws CheckFailed when the engine breaks its contract.
  void run();

  Stage stage;
  Model model;
  Network network;
  PacketFaults packet_faults;
  Checker checker;
  std::vector<std::unique_ptr<Host>> hosts;
  Workload workload;
  PathFaults path_faults;
  HostFaults host_faults;
  ApiFaults api_faults;
  Adversary adversary;
  Forger forger;

  // How long the drain took, and how long it could have taken.
  DurationNs drain_ns = 0;
  DurationNs drain_bound_ns = 0;

  // Without delay, so that the window is still where a forger has seen it.
  void deliver_now(Flight flight);
  // Lets everything happen that is due until then.
  void run_until(TimeNs end);

 private:
  void dispatch(const Scheduled& event);
  void heal();
  DurationNs derive_drain_bound() const;
  DurationNs derive_settle_time() const;
  void drain();
  void settle();
  std::string unfinished() const;
  bool all_healthy() const;
};

}  // namespace mrc::dst
