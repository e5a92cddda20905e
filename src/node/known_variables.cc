#include "node/known_variables.h"

#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

#include "os/environment.h"

namespace mrc::node {
namespace {

constexpr std::string_view kPrefix = "MRC_";
constexpr std::array kVariables = std::to_array<KnownVariable>({
    {"MRC_CONFIG", "the one configuration file to read"},
    {"MRC_DIALECT", "wire choices that are open: openmrc or card, and fields: card,first_msn=1"},
    {"MRC_EV_COUNT_ALIGN", "controllers: counts of explicit EV profiles are rounded up to this"},
    {"MRC_EVS", "paths per port of queue pairs without a profile"},
    {"MRC_IFACES", "interfaces that are the planes of the first device, with commas"},
    {"MRC_JOB_KEY", "a secret of the ranks of one job: others are not let in"},
    {"MRC_KEY_FILE", "the key of the cluster, where security is sealed"},
    {"MRC_LAB", "set by mrc lab: the lab that this process runs in"},
    {"MRC_LAB_ADDRESS", "set by mrc lab: address of the host for management"},
    {"MRC_LAB_GID", "set by mrc lab: GID of the host"},
    {"MRC_LAB_HOST", "set by mrc lab: number of the host"},
    {"MRC_LIBIBVERBS", "the real libibverbs to pass other devices on to"},
    {"MRC_LIBRARY_DIR", "where mrc run finds the libraries"},
    {"MRC_LOG_FILE", "where messages go; %h is the host, %p the process"},
    {"MRC_LOG_LEVEL", "off, error, warn, info or debug"},
    {"MRC_MTU", "largest payload of a packet in bytes"},
    {"MRC_PAYLOAD_CHECK", "what the check of a packet covers: full or headers"},
    {"MRC_PLANES", "number of loopback planes of the first device"},
    {"MRC_PORT", "UDP port of the first process"},
    {"MRC_SECURITY", "off, or sealed: packets are encrypted and authenticated"},
    {"MRC_SPRAY_QUANTUM", "packets in a row on one path; 0 adapts"},
    {"MRC_STATE_DIR", "where the state of devices lives"},
    {"MRC_SYSFS_DIR", "set by mrc run: what programs see below /sys/class/infiniband"},
    {"MRC_TELEMETRY", "on, or off: counters of the process cannot be read from outside"},
    {"MRC_TELEMETRY_GROUP", "the group that may read counters of the process"},
    {"MRC_THREADS", "engine threads of a device; 0 goes by the number of processors"},
});

// How many letters must be put in, left out or changed to get from one word to the other.
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t changed = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row.back();
}

// A letter too many, too few or wrong, or two that changed places; MRC_ROOT and MRC_HOST are two
// letters from MRC_PORT and belong to somebody else. Nobody gets the first letter wrong.
bool is_typo(std::string_view name, std::string_view known) {
  name.remove_prefix(kPrefix.size());
  known.remove_prefix(kPrefix.size());
  if (name.empty() || name.front() != known.front()) return false;
  const std::size_t steps = distance(name, known);
  return steps == 1 || (steps == 2 && std::ranges::is_permutation(name, known));
}

}  // namespace

std::span<const KnownVariable> known_variables() { return kVariables; }

bool is_known_variable(std::string_view name) {
  return std::ranges::any_of(kVariables, [&](const auto& known) { return name == known.name; });
}

std::string nearest_variable(std::string_view name) {
  std::string best;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const KnownVariable& known : kVariables) {
    // What our programs set nobody types; MRC_LIB is not MRC_LAB.
    if (std::string_view(known.meaning).starts_with("set by mrc")) continue;
    const std::size_t steps = distance(name, known.name);
    if (!is_typo(name, known.name) || steps >= least) continue;
    least = steps;
    best = known.name;
  }
  return best;
}

std::string misspelt_variable() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string name(text.substr(0, text.find('=')));
    if (!name.starts_with(kPrefix) || is_known_variable(name)) continue;
    const std::string meant = nearest_variable(name);
    // A program with more rights than its caller sees none of them.
    if (meant.empty() || os::environment(name.c_str()) == nullptr) continue;
    std::string told = "environment: there is no variable ";
    return told.append(name).append("; is ").append(meant).append(" meant?");
  }
  return {};
}

}  // namespace mrc::node
