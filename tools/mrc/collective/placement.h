// Which rank this process is, of how many, and where they all meet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace mrc::tool::collective {

constexpr unsigned kMaxRanks = 1'024;
constexpr std::uint16_t kDefaultRootPort = 18'516;

struct Placement {
  unsigned rank = 0;
  unsigned ranks = 1;
  std::string root_host;  // of rank 0
  std::uint16_t root_port = kDefaultRootPort;
  int listener = -1;  // rank 0: a socket that listens already; -1 = listen on root_port

  bool is_root() const { return rank == 0; }
};

// The options of a program that is a rank, and the environment of whoever started it.
class PlacementFlags {
 public:
  void declare(CLI::App& app);
  // Flags count before --hosts, those before the variables of Open MPI, PMI, Slurm and torchrun.
  // Throws Failure (usage) when something is missing or contradictory.
  Placement resolve() const;

 private:
  void take_environment(Placement& place, bool& has_rank, bool& has_ranks) const;
  void take_hosts(Placement& place, bool& has_rank) const;

  const CLI::App* app_ = nullptr;
  unsigned rank_ = 0;
  unsigned ranks_ = 1;
  std::string root_;
  std::vector<std::string> hosts_;
  int listener_ = -1;
};

}  // namespace mrc::tool::collective
