#include "collective/placement.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "collective/failure.h"
#include "os/environment.h"

namespace mrc::collective {
namespace {

// What launchers tell a process about itself, in the order in which it is believed.
struct Launcher {
  const char* rank;
  const char* ranks;
};
constexpr std::array<Launcher, 4> kLaunchers = {{{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                                 {"PMI_RANK", "PMI_SIZE"},
                                                 {"SLURM_PROCID", "SLURM_NTASKS"},
                                                 {"RANK", "WORLD_SIZE"}}};

[[noreturn]] void wrong(const std::string& what) { throw Failure(what, FailureKind::kUsage); }

unsigned read_number(std::string_view text, std::string_view where, unsigned most) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc{} || end != text.end() || value > most)
    wrong(fmt::format("{}: '{}' is no number from 0 to {}", where, text, most));
  return value;
}

std::optional<unsigned> from_environment(const char* name) {
  const char* const text = os::environment(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return read_number(text, name, kMaxRanks);
}

// HOST, HOST:PORT or [ADDRESS]:PORT.
void read_root(const std::string& text, Placement& place) {
  const std::size_t colon = text.rfind(':');
  const bool bracketed = text.starts_with('[');
  const bool has_port = colon != std::string::npos &&
                        (bracketed ? text.find(']') + 1 == colon : text.find(':') == colon);
  std::string host = has_port ? text.substr(0, colon) : text;
  if (bracketed && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) wrong(fmt::format("--root: '{}' is no HOST:PORT", text));
  place.root_host = host;
  if (has_port)
    place.root_port =
        static_cast<std::uint16_t>(read_number(text.substr(colon + 1), "--root", UINT16_MAX));
}

std::string own_host_name() {
  std::array<char, 256> name = {};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

// What is known so far.
struct Draft {
  Placement place;
  bool has_rank = false;
  bool has_ranks = false;

  bool complete() const { return has_rank && has_ranks; }
};

void take_environment(Draft& draft) {
  for (const Launcher& launcher : kLaunchers) {
    const auto rank = from_environment(launcher.rank);
    const auto ranks = from_environment(launcher.ranks);
    if (!rank || !ranks) continue;
    if (!draft.has_rank) draft.place.rank = *rank;
    if (!draft.has_ranks) draft.place.ranks = *ranks;
    draft.has_rank = draft.has_ranks = true;
    return;
  }
}

void take_hosts(const PlacementRequest& request, Draft& draft) {
  const std::vector<std::string>& hosts = request.hosts;
  draft.place.ranks = static_cast<unsigned>(hosts.size());
  draft.has_ranks = true;
  if (request.root.empty()) draft.place.root_host = hosts.front();
  if (draft.has_rank) return;
  const std::string own = own_host_name();
  const auto found = std::find(hosts.begin(), hosts.end(), own);
  if (found == hosts.end())
    wrong(fmt::format("this host, {}, is not in --hosts; give --rank", own));
  draft.place.rank = static_cast<unsigned>(found - hosts.begin());
  draft.has_rank = true;
}

void take_root(const std::string& root, Placement& place) {
  if (!root.empty()) {
    read_root(root, place);
  } else if (const char* master = os::environment("MASTER_ADDR")) {
    place.root_host = master;
    if (const char* port = os::environment("MASTER_PORT"))
      place.root_port = static_cast<std::uint16_t>(read_number(port, "MASTER_PORT", UINT16_MAX));
  }
}

}  // namespace

Placement resolve(const PlacementRequest& request) {
  Draft draft{.place = {.rank = request.rank.value_or(0),
                        .ranks = request.ranks.value_or(1),
                        .root_host = {},
                        .listener = request.listener},
              .has_rank = request.rank.has_value(),
              .has_ranks = request.ranks.has_value()};
  const Placement& place = draft.place;
  if (const char* key = os::environment("MRC_JOB_KEY")) draft.place.job_key = key;
  take_root(request.root, draft.place);
  if (!request.hosts.empty()) take_hosts(request, draft);
  if (!draft.complete()) take_environment(draft);
  if (!draft.complete())
    wrong(
        "which rank is this? Give --rank, --ranks and --root, or --hosts, or start it with "
        "mpirun, srun or torchrun");
  if (place.ranks == 0 || place.ranks > kMaxRanks || place.rank >= place.ranks)
    wrong(fmt::format("rank {} of {}: ranks count from 0, and there are at most {}", place.rank,
                      place.ranks, kMaxRanks));
  if (place.ranks > 1 && !place.is_root() && place.root_host.empty())
    wrong("where is rank 0? Give --root HOST:PORT");
  return place;
}

}  // namespace mrc::collective
