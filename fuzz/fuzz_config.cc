// mrc.toml of anybody: a file that a user may write and a privileged program may read.
#include "fuzz/text_support.h"
#include "node/config.h"

using mrc::fuzz::require;
namespace node = mrc::node;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto result = node::parse_config(mrc::fuzz::text_of(data, size), "mrc.toml");
  if (!result.error.empty()) {
    mrc::fuzz::require_one_line(result.error);
    require(result.devices.empty());
    return 0;
  }
  require(!result.devices.empty());
  for (const node::DeviceConfig& device : result.devices) {
    require(!device.name.empty());
    require(!device.planes.empty() && device.planes.size() <= mrc::kMaxPorts);
    require(device.threads <= node::kMaxThreads);
    for (const node::PeerEntry& peer : device.peers)
      require(peer.planes.size() == device.planes.size());
    for (const node::Srv6Route& route : device.srv6_routes)
      require(route.count >= 1 && route.count <= route.usids.size() && route.choices >= 1 &&
              route.choice_at < route.count);
  }
  return 0;
}
