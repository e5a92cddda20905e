#include "commands/info/inventory.h"

#include <fmt/core.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <memory>

#include "collective/device.h"
#include "commands/info/environment.h"
#include "mrc.h"
#include "mrc_ctl.h"
#include "nic/device.h"
#include "node/config.h"
#include "node/node_state.h"
#include "node/plane_address.h"
#include "wire/ip_address.h"

namespace mrc::tool::info {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kGidTable = 16;

std::string text_of(const wire::IpAddress& address) {
  return std::string(wire::format_address(address).view());
}

std::string version_text(std::uint32_t version) {
  return fmt::format("{}.{}.{}", version >> 24, version >> 16 & 0xff, version & 0xffff);
}

const char* text_of(node::ProfileState state) {
  constexpr std::array<const char*, 3> kNames = {"init", "offline", "online"};
  return kNames.at(static_cast<std::size_t>(state));
}

const char* text_of(node::EvMode mode) {
  constexpr std::array<const char*, 3> kNames = {"auto", "explicit", "generated"};
  return kNames.at(static_cast<std::size_t>(mode));
}

Json versions() {
  std::uint32_t current = 0;
  std::uint32_t last = 0;
  mrc_query_version(&current, &last, nullptr, nullptr);
  return {{"mrc", MRC_VERSION},
          {"api", version_text(current)},
          {"api_oldest", version_text(last)},
          {"ctl_api", version_text(MRC_CTL_API_CURRENT_VERSION)},
          {"ctl_api_oldest", version_text(MRC_CTL_API_LAST_SUPPORTED_VERSION)}};
}

Json ports_of(const nic::DeviceReport& report) {
  Json ports = Json::array();
  for (const nic::PortReport& port : report.ports) {
    const bool active = port.enabled && port.link_up;
    ports.push_back({{"port", static_cast<unsigned>(port.port)},
                     {"interface", port.plane.interface},
                     {"address", text_of(port.plane.address)},
                     {"prefix_bits", port.plane.prefix_bits},
                     {"state", active                          ? "active"
                               : node::has_address(port.plane) ? "down"
                                                               : "missing"},
                     {"enabled", port.enabled},
                     {"link_up", port.link_up},
                     {"rate_gbps", static_cast<double>(report.port_bits_per_second) / 1e9}});
  }
  return ports;
}

Json limits_of(const nic::DeviceLimits& limits) {
  return {{"qps", limits.max_qps},
          {"cqs", limits.max_cqs},
          {"cq_depth", limits.max_cq_depth},
          {"memory_regions", limits.max_regions},
          {"sends_per_qp", limits.max_sends},
          {"buffers_per_send", limits.max_buffers},
          {"inline_bytes", limits.max_inline},
          {"immediates_in_flight", limits.max_immediates},
          {"window_packets", 128U * limits.max_window_units}};
}

Json profiles_of(const node::NodeSnapshot& state) {
  Json ev = Json::array();
  for (const auto& [id, profile] : state.ev_profiles) {
    const auto denied = std::ranges::count_if(profile.evs, &node::ProfileEv::denied);
    ev.push_back({{"id", id},
                  {"state", text_of(profile.state)},
                  {"mode", text_of(profile.mode)},
                  {"format_id", profile.format_id},
                  {"evs", profile.evs.size()},
                  {"denied", denied}});
  }
  Json cc = Json::array();
  for (const auto& [id, profile] : state.cc_profiles)
    cc.push_back({{"id", id}, {"state", text_of(profile.state)}});
  return {{"ev_formats", state.formats.size()}, {"ev", ev}, {"cc", cc}};
}

// Through verbs, as a program sees them.
Json gids_of(const std::string& name) {
  Json gids = Json::array();
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  for (int i = 0; list != nullptr && i < count; ++i) {
    if (ibv_get_device_name(list[i]) != name) continue;
    ibv_context* const context = ibv_open_device(list[i]);
    if (context == nullptr) break;
    for (int index = 0; index < kGidTable; ++index) {
      ibv_gid gid = {};
      if (ibv_query_gid(context, 1, index, &gid) != 0) break;
      std::array<std::uint8_t, 16> bytes = {};
      std::copy(std::begin(gid.raw), std::end(gid.raw), bytes.begin());
      if (std::ranges::any_of(bytes, [](std::uint8_t byte) { return byte != 0; }))
        gids.push_back({{"index", index}, {"gid", collective::gid_text(bytes)}});
    }
    ibv_close_device(context);
    break;
  }
  if (list != nullptr) ibv_free_device_list(list);
  return gids;
}

Json describe(const node::DeviceConfig& config) {
  Json device = {{"name", config.name},
                 {"backend", config.backend == node::BackendKind::kUdp ? "udp" : "wire"},
                 {"udp_port", config.udp_port},
                 {"state_directory", config.directory}};
  std::string error;
  const std::shared_ptr<nic::Device> opened = nic::Device::open(config, error);
  if (!opened) {
    device["error"] = error;
    return device;
  }
  const nic::DeviceReport report = opened->report();
  const auto state = opened->node().snapshot();
  device["process_number"] = static_cast<unsigned>(report.process);
  device["gid"] = text_of(opened->gid());
  device["gids"] = gids_of(config.name);
  device["path_mtu_bytes"] = report.path_mtu;
  device["evs_per_port"] = config.evs_per_port;
  device["active_evs_per_port"] = config.active_evs_per_port;
  device["spray_quantum"] = config.spray_quantum;
  device["payload_check"] = config.payload_check == node::PayloadCheck::kFull ? "full" : "headers";
  device["security"] = config.security == node::SecurityMode::kSealed ? "sealed" : "off";
  device["trimming"] = config.trimming;
  device["one_udp_port"] = config.dialect.processes == wire::Processes::kByQueuePair;
  device["dialect"] = wire::dialect_text(config.dialect).view();
  device["threads"] = report.threads;
  device["ports"] = ports_of(report);
  device["limits"] = limits_of(opened->limits());
  device["state_version"] = state->version;
  device["profiles"] = profiles_of(*state);
  return device;
}

// Devices of real network cards that the shim passes on.
Json other_devices(const std::vector<node::DeviceConfig>& own) {
  Json names = Json::array();
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  for (int i = 0; list != nullptr && i < count; ++i) {
    const std::string name = ibv_get_device_name(list[i]);
    if (std::ranges::find(own, name, &node::DeviceConfig::name) == own.end()) names.push_back(name);
  }
  if (list != nullptr) ibv_free_device_list(list);
  return names;
}

Json environment_json() {
  Json list = Json::array();
  for (const Variable& variable : environment())
    list.push_back({{"name", variable.name}, {"value", variable.value}, {"known", variable.known}});
  return list;
}

void print_device(const Json& device) {
  fmt::print("device {}\n", device["name"].get<std::string>());
  const auto line = [](const char* name, const std::string& text) {
    fmt::print("  {:<29}{}\n", name, text);
  };
  if (device.contains("error")) {
    line("cannot be opened", device["error"].get<std::string>());
    return;
  }
  line("back end", device["backend"].get<std::string>());
  for (const Json& gid : device["gids"])
    line(fmt::format("GID {}", gid["index"].get<int>()).c_str(), gid["gid"].get<std::string>());
  line("path MTU", fmt::format("{} bytes", device["path_mtu_bytes"].get<unsigned>()));
  line("UDP port",
       fmt::format(fmt::runtime(device["one_udp_port"].get<bool>()
                                    ? "{} (shared; this process has number {})"
                                    : "{} (+ {}, the number of this process)"),
                   device["udp_port"].get<unsigned>(), device["process_number"].get<unsigned>()));
  line("dialect", device["dialect"].get<std::string>());
  line("payload check", device["payload_check"] == "full"
                            ? "full: the ICRC covers the payload"
                            : "headers: the UDP checksum covers it, with peers that agree");
  line("security", device["security"] == "off"
                       ? "off: packets are plain"
                       : "sealed: packets are encrypted, plain ones are dropped");
  line("trimming", device["trimming"].get<bool>() ? "on: data may be trimmed by switches" : "off");
  line("engine threads", fmt::format("{}", device["threads"].get<unsigned>()));
  line("paths per port",
       fmt::format("{} without a profile", device["evs_per_port"].get<unsigned>()));
  line("state", fmt::format("{} (version {})", device["state_directory"].get<std::string>(),
                            device["state_version"].get<std::uint64_t>()));
  for (const Json& port : device["ports"]) {
    line(fmt::format("port {}", port["port"].get<unsigned>()).c_str(),
         fmt::format("{:<7} {:<12} {}/{}  {:g} Gb/s{}", port["state"].get<std::string>(),
                     port["interface"].get<std::string>(), port["address"].get<std::string>(),
                     port["prefix_bits"].get<unsigned>(), port["rate_gbps"].get<double>(),
                     port["state"] == "missing"    ? "  its interface or address is not there yet"
                     : port["enabled"].get<bool>() ? ""
                                                   : "  disabled by a controller"));
  }
  for (const auto& [name, value] : device["limits"].items())
    line(("limit " + name).c_str(), fmt::format("{}", value.get<std::uint64_t>()));
}

void print_profiles(const Json& profiles) {
  for (const Json& profile : profiles["ev"]) {
    fmt::print("  EV profile {}: {}, {}, {} EVs, {} denied\n", profile["id"].get<std::uint64_t>(),
               profile["state"].get<std::string>(), profile["mode"].get<std::string>(),
               profile["evs"].get<std::size_t>(), profile["denied"].get<std::size_t>());
  }
  for (const Json& profile : profiles["cc"]) {
    fmt::print("  CC profile {}: {}\n", profile["id"].get<std::uint64_t>(),
               profile["state"].get<std::string>());
  }
}

}  // namespace

Json inventory(const std::string& device) {
  Json document = {{"schema", "mrc.info"}, {"version", 1}, {"versions", versions()}};
  const node::ConfigResult config = node::load_config();
  document["environment"] = environment_json();
  if (!config.error.empty()) document["error"] = config.error;
  document["devices"] = Json::array();
  for (const node::DeviceConfig& each : config.devices) {
    if (device.empty() || each.name == device) document["devices"].push_back(describe(each));
  }
  document["other_devices"] = other_devices(config.devices);
  return document;
}

void print_inventory(const Json& document) {
  const Json& versions = document["versions"];
  fmt::print("mrc {}, API {}, controller API {}\n", versions["mrc"].get<std::string>(),
             versions["api"].get<std::string>(), versions["ctl_api"].get<std::string>());
  for (const Json& device : document["devices"]) {
    print_device(device);
    if (device.contains("profiles")) print_profiles(device["profiles"]);
  }
  for (const Json& name : document["other_devices"])
    fmt::print("device {}\n  {:<29}from the real libibverbs, without MRC\n",
               name.get<std::string>(), "other");
  fmt::print("environment\n");
  for (const Json& variable : document["environment"])
    fmt::print("  {}={}{}\n", variable["name"].get<std::string>(),
               variable["value"].get<std::string>(),
               variable["known"].get<bool>() ? "" : "  (means nothing)");
  if (document["environment"].empty()) fmt::print("  no MRC_* variable is set\n");
}

}  // namespace mrc::tool::info
