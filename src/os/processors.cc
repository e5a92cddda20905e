#include "os/processors.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <string>

#include "os/environment.h"

namespace mrc::os {
namespace {

constexpr unsigned kMostRanks = 4'096;
constexpr const char* kGroupRoot = "/sys/fs/cgroup";
// Of the launchers in the order in which they are believed.
constexpr std::array<const char*, 4> kRankVariables = {
    "LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"};

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

unsigned by_affinity() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (::sched_getaffinity(0, sizeof(usable), &usable) != 0) return 1;
  return static_cast<unsigned>(std::max(CPU_COUNT(&usable), 1));
}

// Where the process is in the tree of version 2: the line "0::/path".
std::string control_group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::/")) return line.substr(3);
  }
  return {};
}

}  // namespace

unsigned quota_of(std::string_view cpu_max) {
  std::uint64_t quota = 0;
  const char* const end = cpu_max.data() + cpu_max.size();
  const auto [at, error] = std::from_chars(cpu_max.data(), end, quota);
  if (error != std::errc() || at == end || *at != ' ') return 0;
  std::uint64_t period = 0;
  if (std::from_chars(at + 1, end, period).ec != std::errc() || period == 0) return 0;
  return static_cast<unsigned>(std::clamp<std::uint64_t>(quota / period, 1, CPU_SETSIZE));
}

unsigned usable_processors() {
  unsigned usable = by_affinity();
  for (std::string group = control_group(); !group.empty();
       group.resize(std::min(group.rfind('/'), group.size()))) {
    const unsigned quota = quota_of(first_line(kGroupRoot + group + "/cpu.max"));
    if (quota != 0) usable = std::min(usable, quota);
  }
  return usable;
}

unsigned ranks_in(std::string_view text) {
  unsigned ranks = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, ranks);
  const bool whole = at == end || *at == '(';
  return error == std::errc() && whole && ranks <= kMostRanks ? ranks : 0;
}

unsigned ranks_on_host() {
  for (const char* name : kRankVariables) {
    const char* const value = environment(name);
    if (value == nullptr) continue;
    const unsigned ranks = ranks_in(value);
    if (ranks != 0) return ranks;
  }
  return 0;
}

}  // namespace mrc::os
