// What a host tells another of its device, so that both find out what cannot work between them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "node/config.h"
#include "wire/ip_address.h"

namespace mrc::tool {

// Where nobody but this host can be reached.
bool is_loopback(const wire::IpAddress& address);

struct PlaneFacts {
  wire::IpAddress address;
  unsigned mtu = 0;  // of its interface; 0: not known
};
struct DeviceFacts {
  unsigned udp_port = 0;
  std::vector<PlaneFacts> planes;
};

// By the configuration of this machine; without a name the first device.
std::optional<node::DeviceConfig> own_config(const std::string& device);
std::optional<DeviceFacts> own_facts(const std::string& device);
// Nothing for a device whose packets are no UDP packets of sockets: those find each other
// otherwise.
std::optional<DeviceFacts> facts_of(const node::DeviceConfig& config);

nlohmann::json to_json(const DeviceFacts& facts);
// Nothing when it is no such thing; the other end is not trusted.
std::optional<DeviceFacts> read_facts(const nlohmann::json& message);

// Something that keeps two devices apart or slows them down.
struct Disagreement {
  bool fatal = false;  // nothing, or nothing on that plane, can arrive
  std::string found;
  std::string fix;
};
// `peer` is the name of the host that said `theirs`. The worst come first.
std::vector<Disagreement> compare(const node::DeviceConfig& own, const DeviceFacts& theirs,
                                  const std::string& peer);

}  // namespace mrc::tool
