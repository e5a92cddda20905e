// Which rank this process is, of how many, and where they all meet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mrc::collective {

inline constexpr unsigned kMaxRanks = 1'024;
inline constexpr std::uint16_t kDefaultRootPort = 18'516;

struct Placement {
  unsigned rank = 0;
  unsigned ranks = 1;
  std::string root_host;  // of rank 0
  std::uint16_t root_port = kDefaultRootPort;
  int listener = -1;  // rank 0: a socket that listens already; -1 = listen on root_port
  // What the ranks of one job know and nobody else does; empty = nothing of that kind.
  std::string job_key;

  bool is_root() const { return rank == 0; }
};

// What a program was told by its flags; see placement_flags.h.
struct PlacementRequest {
  std::optional<unsigned> rank;
  std::optional<unsigned> ranks;
  std::string root;                // HOST, HOST:PORT or [ADDRESS]:PORT of rank 0
  std::vector<std::string> hosts;  // one per rank
  int listener = -1;
};

// Flags count before the list of hosts, that before the variables of Open MPI, PMI, Slurm and
// torchrun in the environment; the key of the job is MRC_JOB_KEY there. Throws Failure (usage) when
// something is missing or contradictory.
Placement resolve(const PlacementRequest& request);

}  // namespace mrc::collective
