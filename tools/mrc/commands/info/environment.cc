#include "commands/info/environment.h"

#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <string_view>

namespace mrc::tool::info {
namespace {

constexpr std::size_t kTypoDistance = 3;

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

std::string nearest(std::string_view name) {
  std::string best;
  std::size_t least = kTypoDistance + 1;
  for (const KnownVariable& known : known_variables()) {
    const std::size_t steps = distance(name, known.name);
    if (steps >= least) continue;
    least = steps;
    best = known.name;
  }
  return best;
}

bool is_known(std::string_view name) {
  return std::ranges::any_of(known_variables(),
                             [&](const KnownVariable& known) { return name == known.name; });
}

}  // namespace

const std::vector<KnownVariable>& known_variables() {
  static const std::vector<KnownVariable> kList = {
      {"MRC_CONFIG", "the one configuration file to read"},
      {"MRC_EV_COUNT_ALIGN", "controllers: counts of explicit EV profiles are rounded up to this"},
      {"MRC_EVS", "paths per port of queue pairs without a profile"},
      {"MRC_IFACES", "interfaces that are the planes of the first device, with commas"},
      {"MRC_LIBIBVERBS", "the real libibverbs to pass other devices on to"},
      {"MRC_LIBRARY_DIR", "where mrc run finds the libraries"},
      {"MRC_LOG_FILE", "where messages go; %h is the host, %p the process"},
      {"MRC_LOG_LEVEL", "off, error, warn, info or debug"},
      {"MRC_MTU", "largest payload of a packet in bytes"},
      {"MRC_PAYLOAD_CHECK", "what the check of a packet covers: full or headers"},
      {"MRC_PLANES", "number of loopback planes of the first device"},
      {"MRC_PORT", "UDP port of the first process"},
      {"MRC_SPRAY_QUANTUM", "packets in a row on one path; 0 adapts"},
      {"MRC_STATE_DIR", "where the state of devices lives"},
      {"MRC_SYSFS_DIR", "set by mrc run: what programs see below /sys/class/infiniband"},
      {"MRC_THREADS", "engine threads of a device; 0 goes by the number of processors"},
  };
  return kList;
}

std::vector<Variable> environment() {
  std::vector<Variable> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (!text.starts_with("MRC_") || equals == std::string_view::npos) continue;
    Variable variable;
    variable.name = text.substr(0, equals);
    variable.value = text.substr(equals + 1);
    variable.known = is_known(variable.name);
    if (!variable.known) variable.meant = nearest(variable.name);
    found.push_back(std::move(variable));
  }
  std::ranges::sort(found, {}, &Variable::name);
  return found;
}

}  // namespace mrc::tool::info
