#include "commands/drain/fabric_nodes.h"

#include <fmt/core.h>

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "device_facts.h"
#include "fabric/input_error.h"
#include "launch/attach.h"
#include "launch/lab_links.h"
#include "node/config.h"

namespace mrc::tool::drain {
namespace {

node::DeviceConfig device_of(const lab::Directory& directory, unsigned host) {
  const std::string path = directory.config_path(host);
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file || text.empty()) throw std::runtime_error(path + ": cannot be read");
  node::ConfigResult config = node::parse_config(text, path);
  if (!config.error.empty()) throw std::runtime_error(config.error);
  return std::move(config.devices.at(0));
}

}  // namespace

FabricNodes nodes_of_lab(const lab::Directory& directory) {
  auto client = std::make_unique<lab::ControlClient>();
  lab_tool::attach(directory, *client);
  const LabLinks links = ask_links(*client);
  FabricNodes all{
      .spec = *links.fabric, .nodes = {}, .lab = std::move(client), .folder = directory.path()};
  const fabric::Topology topology(all.spec);
  if (device_of(directory, 0).srv6_routes.empty()) {
    throw fabric::InputError(
        "a lab of three tiers, or of more than 64 paths per plane, cannot be drained: it "
        "chooses the paths, and its devices do not know them (docs/lab.md)");
  }
  for (unsigned host = 0; host < all.spec.hosts; ++host)
    all.nodes.push_back(controller::open_drain_node(topology, host, device_of(directory, host)));
  return all;
}

FabricNodes own_node(const fabric::TopologySpec& spec, unsigned host, const std::string& device) {
  const std::optional<node::DeviceConfig> config = own_config(device);
  if (!config) {
    throw fabric::InputError(device.empty() ? "this host has no device"
                                            : "there is no device " + device);
  }
  controller::DrainNode node = controller::open_drain_node(fabric::Topology(spec), host, *config);
  FabricNodes all{.spec = spec, .nodes = {}, .lab = nullptr, .folder = config->directory};
  all.nodes.push_back(std::move(node));
  return all;
}

InstanceLock lock_for_change(const FabricNodes& nodes) {
  InstanceLock lock(nodes.folder + "/drain.lock");
  if (!lock.held()) {
    throw fabric::InputError(
        fmt::format("process {} is draining or giving back a part; one at a time", lock.holder()));
  }
  return lock;
}

}  // namespace mrc::tool::drain
