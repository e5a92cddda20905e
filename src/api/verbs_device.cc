// The list of devices: ours first, then those of the real libibverbs.
#include <endian.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "api/guard.h"
#include "api/log.h"
#include "api/verbs_real.h"
#include "api/verbs_types.h"
#include "node/config.h"

#undef ibv_get_device_list

namespace mrc::api {
namespace {

constexpr std::size_t kMaxDevices = 16;

// Devices are made once and stay: programs may hold an ibv_device as long as they like.
struct DeviceTable {
  std::mutex mutex;
  std::array<std::atomic<VerbsDevice*>, kMaxDevices> devices{};
  bool loaded = false;
};

DeviceTable& table() {
  static constinit DeviceTable instance;
  return instance;
}

std::uint64_t mix_in(std::uint64_t hash, const void* bytes, std::size_t size) {
  const auto* at = static_cast<const unsigned char*>(bytes);
  for (std::size_t i = 0; i < size; ++i)
    hash = (hash ^ at[i]) * 0x100'0000'01b3;
  return hash;
}

// A number that stays the same on this host and differs from other hosts'. Locally administered.
std::uint64_t guid_of(const node::DeviceConfig& config) {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host.front() = '\0';
  std::uint64_t hash = mix_in(0xcbf2'9ce4'8422'2325, host.data(), std::strlen(host.data()));
  hash = mix_in(hash, config.name.data(), config.name.size());
  for (const node::PlaneConfig& plane : config.planes)
    hash = mix_in(hash, plane.address.bytes.data(), plane.address.bytes.size());
  return (hash & ~(std::uint64_t{1} << 56)) | (std::uint64_t{1} << 57);
}

std::unique_ptr<VerbsDevice> make_device(const node::DeviceConfig& config, std::size_t index) {
  auto made = std::make_unique<VerbsDevice>();
  made->config = config;
  made->guid = guid_of(config);
  ibv_device& device = made->device;
  device.node_type = IBV_NODE_CA;
  device.transport_type = IBV_TRANSPORT_IB;
  const char* const name = config.name.c_str();
  std::snprintf(device.name, sizeof device.name, "%s", name);
  std::snprintf(device.dev_name, sizeof device.dev_name, "mrc_uverbs%zu", index);
  std::snprintf(device.dev_path, sizeof device.dev_path, "/sys/class/infiniband_verbs/%s",
                device.dev_name);
  std::snprintf(device.ibdev_path, sizeof device.ibdev_path, "/sys/class/infiniband/%.200s", name);
  return made;
}

// A broken configuration is told each time and leaves no device of ours.
void load_devices(DeviceTable& devices) {
  if (devices.loaded) return;
  const node::ConfigResult config = node::load_config();
  if (!config.error.empty()) {
    log(LogLevel::kError, "%s", config.error.c_str());
    return;
  }
  std::vector<std::unique_ptr<VerbsDevice>> made;
  for (std::size_t i = 0; i < std::min(config.devices.size(), kMaxDevices); ++i)
    made.push_back(make_device(config.devices[i], i));
  for (const std::string& line : config.environment)
    log(LogLevel::kInfo, "%s", line.c_str());
  for (std::size_t i = 0; i < made.size(); ++i)
    devices.devices.at(i).store(made[i].release(), std::memory_order_release);
  devices.loaded = true;
}

// What ibv_get_device_list returns points behind this head.
struct ListHead {
  ibv_device** real = nullptr;
};
static_assert(sizeof(ListHead) % alignof(ibv_device*) == 0);

int make_list(ibv_device**& out, int& count) {
  std::vector<ibv_device*> all;
  {
    const std::lock_guard lock(table().mutex);
    load_devices(table());
  }
  for (const auto& device : table().devices) {
    if (VerbsDevice* ours = device.load(std::memory_order_acquire); ours != nullptr)
      all.push_back(&ours->device);
  }
  int real_count = 0;
  const auto real_list = MRC_REAL(ibv_get_device_list);
  ibv_device** real = real_list == nullptr ? nullptr : real_list(&real_count);
  try {
    for (int i = 0; real != nullptr && i < real_count; ++i)
      all.push_back(real[i]);
    const std::size_t bytes = sizeof(ListHead) + (all.size() + 1) * sizeof(void*);
    auto* head = static_cast<ListHead*>(::operator new(bytes));
    head->real = real;
    out = reinterpret_cast<ibv_device**>(head + 1);
  } catch (const std::bad_alloc&) {
    if (real != nullptr) MRC_REAL(ibv_free_device_list)(real);
    throw;
  }
  std::copy(all.begin(), all.end(), out);
  out[all.size()] = nullptr;
  count = static_cast<int>(all.size());
  return 0;
}

}  // namespace

VerbsDevice* our_device(const ibv_device* device) {
  if (device == nullptr) return nullptr;
  for (const auto& slot : table().devices) {
    VerbsDevice* ours = slot.load(std::memory_order_acquire);
    if (ours == nullptr) return nullptr;
    if (&ours->device == device) return ours;
  }
  return nullptr;
}

}  // namespace mrc::api

using mrc::api::forward_or;
using mrc::api::our_device;

MRC_API_EXPORT ibv_device** ibv_get_device_list(int* num_devices) {
  ibv_device** list = nullptr;
  int count = 0;
  mrc::api::null_on_error(list, [&] { return mrc::api::make_list(list, count); });
  if (num_devices != nullptr) *num_devices = count;
  return list;
}

MRC_API_EXPORT void ibv_free_device_list(ibv_device** list) {
  if (list == nullptr) return;
  auto* head = reinterpret_cast<mrc::api::ListHead*>(list) - 1;
  if (head->real != nullptr) MRC_REAL(ibv_free_device_list)(head->real);
  ::operator delete(head);
}

MRC_API_EXPORT const char* ibv_get_device_name(ibv_device* device) {
  if (device == nullptr) return nullptr;
  return device->name;
}

MRC_API_EXPORT __be64 ibv_get_device_guid(ibv_device* device) {
  if (const auto* ours = our_device(device)) return htobe64(ours->guid);
  return forward_or(__be64{0}, device, MRC_REAL(ibv_get_device_guid), device);
}

MRC_API_EXPORT int ibv_get_device_index(ibv_device* device) {
  if (our_device(device) != nullptr) return -1;  // the kernel knows no number for it
  return forward_or(-1, device, MRC_REAL(ibv_get_device_index), device);
}
