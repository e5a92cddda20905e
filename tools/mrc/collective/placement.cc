#include "collective/placement.h"

#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "os/environment.h"
#include "peer/failure.h"

namespace mrc::tool::collective {
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

[[noreturn]] void wrong(const std::string& what) { throw Failure(what, ExitCode::kUsage); }

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

}  // namespace

void PlacementFlags::declare(CLI::App& app) {
  app_ = &app;
  app.add_option("--rank", rank_, "Which rank this process is")->group("Ranks");
  app.add_option("--ranks", ranks_, "How many ranks there are")
      ->check(CLI::Range(1U, kMaxRanks))
      ->group("Ranks");
  app.add_option("--root", root_, "HOST:PORT of rank 0, where all ranks meet over TCP")
      ->group("Ranks");
  app.add_option("--hosts", hosts_,
                 "One host per rank; the first is the root, and the rank is our place in the list")
      ->delimiter(',')
      ->group("Ranks");
  app.add_option("--listen-fd", listener_,
                 "Rank 0: a socket that listens already, from the process that started us")
      ->group("Ranks");
}

void PlacementFlags::take_environment(Placement& place, bool& has_rank, bool& has_ranks) const {
  for (const Launcher& launcher : kLaunchers) {
    const auto rank = from_environment(launcher.rank);
    const auto ranks = from_environment(launcher.ranks);
    if (!rank || !ranks) continue;
    if (!has_rank) place.rank = *rank;
    if (!has_ranks) place.ranks = *ranks;
    has_rank = has_ranks = true;
    return;
  }
}

void PlacementFlags::take_hosts(Placement& place, bool& has_rank) const {
  place.ranks = static_cast<unsigned>(hosts_.size());
  if (root_.empty()) place.root_host = hosts_.front();
  if (has_rank) return;
  const std::string own = own_host_name();
  const auto found = std::find(hosts_.begin(), hosts_.end(), own);
  if (found == hosts_.end())
    wrong(fmt::format("this host, {}, is not in --hosts; give --rank", own));
  place.rank = static_cast<unsigned>(found - hosts_.begin());
  has_rank = true;
}

Placement PlacementFlags::resolve() const {
  Placement place{.rank = rank_, .ranks = ranks_, .root_host = {}, .listener = listener_};
  bool has_rank = app_->count("--rank") > 0;
  bool has_ranks = app_->count("--ranks") > 0;
  if (!root_.empty()) {
    read_root(root_, place);
  } else if (const char* master = os::environment("MASTER_ADDR")) {
    place.root_host = master;
    if (const char* port = os::environment("MASTER_PORT"))
      place.root_port = static_cast<std::uint16_t>(read_number(port, "MASTER_PORT", UINT16_MAX));
  }
  if (!hosts_.empty()) {
    take_hosts(place, has_rank);
    has_ranks = true;
  }
  if (!has_rank || !has_ranks) take_environment(place, has_rank, has_ranks);
  if (!has_rank || !has_ranks)
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

}  // namespace mrc::tool::collective
