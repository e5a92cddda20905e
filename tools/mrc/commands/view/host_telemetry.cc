#include "commands/view/host_telemetry.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "commands/stat/device_report.h"
#include "commands/view/report_line.h"

namespace mrc::tool::view_tool {
namespace {

using Json = nlohmann::ordered_json;

// Programs of a lab leave MRC_STATE_DIR alone (lab/host_config.h), so their pages are there.
constexpr const char* kDirectory = "/dev/shm";
// Between `mrc lab exec` and a process that has a device: shells, launchers.
constexpr unsigned kMaxGenerations = 16;

// 0 when it is gone.
std::uint64_t parent_of(std::uint64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // The name in brackets may hold anything; behind the last bracket stand state and parent.
  const std::size_t end = text.rfind(')');
  if (end == std::string::npos || end + 4 > text.size()) return 0;
  return std::strtoull(text.c_str() + end + 4, nullptr, 10);
}

std::optional<unsigned> host_of(std::uint64_t pid, const std::map<std::uint64_t, unsigned>& hosts) {
  for (unsigned i = 0; i < kMaxGenerations && pid > 1; ++i) {
    if (const auto found = hosts.find(pid); found != hosts.end()) return found->second;
    pid = parent_of(pid);
  }
  return std::nullopt;
}

}  // namespace

void HostTelemetry::look(view::Nanoseconds at, std::span<const LabStatus::Program> programs) {
  std::map<std::uint64_t, unsigned> hosts;
  for (const LabStatus::Program& program : programs)
    hosts.emplace(program.pid, program.host);
  node::TelemetryListing now =
      hosts.empty() ? node::TelemetryListing{} : node::read_telemetry({.directory = kDirectory});
  std::map<unsigned, Json> reports;
  for (const unsigned host : std::exchange(told_, {}))
    reports.emplace(host, Json::array());
  for (const stat::Change& change : stat::changes_of(before_, now)) {
    if (!change.now->alive) continue;
    const auto host = host_of(change.now->body.process.pid, hosts);
    if (!host) continue;
    Json& devices = reports.emplace(*host, Json::array()).first->second;
    if (devices.size() < kMaxDevices) devices.push_back(short_report(change));
    told_.insert(*host);
  }
  for (const auto& [host, devices] : reports)
    sink_(report_line(host, at, devices));
  before_ = std::move(now);
}

}  // namespace mrc::tool::view_tool
