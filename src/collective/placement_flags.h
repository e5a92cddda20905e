// The flags of a program that is a rank. For programs that read theirs with CLI11, which the
// library itself does not need.
#pragma once

#include <CLI/CLI.hpp>

#include "collective/placement.h"

namespace mrc::collective {

inline void declare_placement(CLI::App& app, PlacementRequest& request) {
  app.add_option("--rank", request.rank, "Which rank this process is")->group("Ranks");
  app.add_option("--ranks", request.ranks, "How many ranks there are")
      ->check(CLI::Range(1U, kMaxRanks))
      ->group("Ranks");
  app.add_option("--root", request.root, "HOST:PORT of rank 0, where all ranks meet over TCP")
      ->group("Ranks");
  app.add_option("--hosts", request.hosts,
                 "One host per rank; the first is the root, and the rank is our place in the list")
      ->delimiter(',')
      ->group("Ranks");
  app.add_option("--listen-fd", request.listener,
                 "Rank 0: a socket that listens already, from the process that started us")
      ->group("Ranks");
}

}  // namespace mrc::collective
