#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "commands/doctor/check.h"
#include "node/config.h"
#include "terminal.h"

namespace mrc::tool::doctor {
namespace {

Finding config_finding(const node::ConfigResult& config) {
  if (!config.error.empty())
    return {Verdict::kBroken, "configuration", config.error,
            "correct it; docs/configuration.md lists what may be set"};
  const std::size_t count = config.devices.size();
  return {
      Verdict::kOk, "configuration", fmt::format("{} device{}", count, count == 1 ? "" : "s"), {}};
}

}  // namespace

Examination examine(const PeerHost& peer) {
  const LongWait wait("looking at " + (peer.host.empty() ? "this host" : peer.host));
  Examination examination;
  Findings& findings = examination.findings;
  const node::ConfigResult config = node::load_config();
  findings.push_back(config_finding(config));
  check_environment(findings);
  for (const node::DeviceConfig& device : config.devices) {
    check_interfaces(device, findings);
    check_state_directory(device, findings);
    const bool looks = peer.device.empty() || peer.device == device.name;
    if (check_device(device, looks ? peer : PeerHost{}, findings)) examination.peer_told = true;
  }
  check_socket_buffers(findings);
  check_segmentation(findings);
  check_netlink(findings);
  check_limits(findings);
  check_processors(findings);
  check_libraries(findings);
  check_real_devices(findings);
  return examination;
}

nlohmann::ordered_json to_json(const Findings& findings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings)
    list.push_back({{"verdict", name_of(finding.verdict)},
                    {"what", finding.what},
                    {"found", finding.found},
                    {"fix", finding.fix}});
  return list;
}

}  // namespace mrc::tool::doctor
