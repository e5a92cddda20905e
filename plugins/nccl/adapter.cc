#include "adapter.h"

#include <endian.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>

#include "log.h"
#include "mrc_ctl.h"

namespace mrc::nccl {
namespace {

constexpr std::uint64_t kLookEveryMs = 50;
constexpr unsigned kMaxPlanes = 32;
// How the library names the files that its devices do not have; real devices are named otherwise.
constexpr const char* kOurFilePrefix = "mrc_";

// All devices and those that are open. Never destroyed: NCCL's threads may outlive main().
struct Devices {
  std::mutex mutex;
  std::vector<DeviceInfo> infos;
  std::vector<std::weak_ptr<Adapter>> open;
};
Devices& all_devices() {
  static auto* instance = new Devices;
  return *instance;
}

class DeviceList {
 public:
  DeviceList() : list_(ibv_get_device_list(&count_)) {}
  ~DeviceList() {
    if (list_ != nullptr) ibv_free_device_list(list_);
  }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;

  // Ours only; the list may have those of a real RDMA card as well.
  std::vector<ibv_device*> ours() const {
    std::vector<ibv_device*> found;
    for (int i = 0; list_ != nullptr && i < count_; ++i) {
      const bool named_so =
          std::strncmp(list_[i]->dev_name, kOurFilePrefix, std::strlen(kOurFilePrefix)) == 0;
      if (named_so) found.push_back(list_[i]);
    }
    return found;
  }

 private:
  int count_ = 0;
  ibv_device** list_;
};

// Mbit/s of InfiniBand's lanes and rates.
int megabits(const ibv_port_attr& port) {
  int lane = 2'500;
  switch (port.active_speed) {
    case 2:
      lane = 5'000;
      break;
    case 4:
    case 8:
      lane = 10'000;
      break;
    case 16:
      lane = 14'000;
      break;
    case 32:
      lane = 25'000;
      break;
    case 64:
      lane = 50'000;
      break;
    case 128:
      lane = 100'000;
      break;
    default:
      break;
  }
  switch (port.active_width) {
    case 2:
      return 4 * lane;
    case 4:
      return 8 * lane;
    case 8:
      return 12 * lane;
    default:
      return lane;
  }
}

// NCCL chooses channels and protocols by the speed of a device. What ports in software carry is
// bounded by processors, whatever their interfaces could: told more, NCCL spreads small messages
// over more channels and sends middling ones as many small ones.
constexpr int kMaxSpeedMbit = 40'000;

// False: the reason has been logged.
bool describe(const Adapter& adapter, DeviceInfo& info) {
  const char* const name = info.name.c_str();
  mrc_device_attr mrc{};
  int supported = 0;
  int error = mrc_query_device(adapter.verbs(), &mrc, &supported);
  if (error != 0 || supported == 0) {
    log_warning("%s does not speak MRC", name);
    return false;
  }
  ibv_port_attr port{};
  error = ibv_query_port(adapter.verbs(), 1, &port);
  ibv_gid gid{};
  if (error != 0 || ibv_query_gid(adapter.verbs(), 1, 0, &gid) != 0) {
    log_warning("%s does not say what its port is like: %s", name, std::strerror(error));
    return false;
  }
  mrc_ctl_device_attr control{};
  if (mrc_ctl_query_device(adapter.verbs(), &control) == 0 && control.phy_port_mask != 0)
    info.planes = static_cast<unsigned>(std::popcount(control.phy_port_mask));
  std::copy(std::begin(gid.raw), std::end(gid.raw), info.gid.bytes.begin());
  info.speed_mbit = std::min(megabits(port), kMaxSpeedMbit);
  info.path_mtu = static_cast<std::uint8_t>(port.active_mtu);
  info.max_message_bytes = port.max_msg_sz;
  info.max_immediates = std::min(mrc.wimm_attr.max_wimm, mrc.wimm_attr.max_wimm_dest);
  info.max_window = mrc.mpr_attr.max_mpr;
  info.capabilities = mrc.cap;
  info.interface = interface_of(info.gid);
  info.pci_path = pci_path_of(info.interface);
  return true;
}

std::vector<DeviceInfo> describe_all() {
  std::vector<DeviceInfo> infos;
  const DeviceList list;
  for (ibv_device* device : list.ours()) {
    DeviceInfo info;
    info.name = ibv_get_device_name(device);
    info.guid = be64toh(ibv_get_device_guid(device));
    const std::shared_ptr<Adapter> adapter = Adapter::open(info);
    if (adapter != nullptr && describe(*adapter, info)) infos.push_back(info);
  }
  if (infos.empty()) {
    log_warning("no MRC device can be used, see above; MRC_LOG_LEVEL=debug says more");
  }
  return infos;
}

}  // namespace

std::shared_ptr<Adapter> Adapter::open(const DeviceInfo& info) {
  std::shared_ptr<Adapter> adapter(new Adapter(info));
  const DeviceList list;
  for (ibv_device* device : list.ours()) {
    if (info.name != ibv_get_device_name(device)) continue;
    adapter->verbs_ = ibv_open_device(device);
    if (adapter->verbs_ == nullptr) {
      log_warning("%s cannot be opened: %s", info.name.c_str(), std::strerror(errno));
      return nullptr;
    }
    mrc_context_attr attr{.mrc_api_version_used = MRC_API_VER_USED,
                          .mrc_vendor_api_version_used = 0};
    adapter->mrc_ = mrc_create_context(adapter->verbs_, &attr);
    if (adapter->mrc_ == nullptr) {
      log_warning("%s cannot be used: %s", info.name.c_str(), std::strerror(errno));
      return nullptr;
    }
    // The interfaces may carry less by now than when the device was described.
    ibv_port_attr port{};
    if (ibv_query_port(adapter->verbs_, 1, &port) == 0)
      adapter->info_.path_mtu = static_cast<std::uint8_t>(port.active_mtu);
    adapter->seen_up_ = adapter->planes_up();
    return adapter;
  }
  log_warning("%s does not exist any more", info.name.c_str());
  return nullptr;
}

Adapter::~Adapter() {
  if (mrc_ != nullptr) mrc_destroy_context(mrc_);
  if (verbs_ != nullptr) ibv_close_device(verbs_);
}

std::uint32_t Adapter::planes_up() const {
  std::uint32_t up = 0;
  for (unsigned plane = 0; plane < std::min(info_.planes, kMaxPlanes); ++plane) {
    ibv_port_attr port{};
    const int error = ibv_query_port(verbs_, static_cast<std::uint8_t>(plane + 1), &port);
    if (error == 0 && port.state == IBV_PORT_ACTIVE) up |= std::uint32_t{1} << plane;
  }
  return up;
}

void Adapter::watch_planes() {
  const std::uint64_t now = coarse_clock_ms();
  std::uint64_t due = next_look_ms_.load(std::memory_order_relaxed);
  if (now < due || !next_look_ms_.compare_exchange_strong(due, now + kLookEveryMs)) return;
  const std::uint32_t up = planes_up();
  const std::uint32_t before = seen_up_.exchange(up);
  for (unsigned plane = 0; plane < std::min(info_.planes, kMaxPlanes); ++plane) {
    const std::uint32_t bit = std::uint32_t{1} << plane;
    if ((up & bit) == (before & bit)) continue;
    if ((up & bit) == 0) {
      const std::string rest =
          up == 0 ? "that was the last one: everything waits for one"
                  : "traffic goes over the other " + std::to_string(std::popcount(up));
      log_warning(
          "%s: plane %u (port %u of %u) is down (no link, or disabled by the controller); %s",
          info_.name.c_str(), plane, plane + 1, info_.planes, rest.c_str());
    } else {
      log_warning("%s: plane %u (port %u of %u) is back; %d carry traffic", info_.name.c_str(),
                  plane, plane + 1, info_.planes, std::popcount(up));
    }
  }
}

const std::vector<DeviceInfo>* find_devices() {
  Devices& devices = all_devices();
  const std::lock_guard lock(devices.mutex);
  if (devices.infos.empty()) {
    devices.infos = describe_all();
    devices.open.resize(devices.infos.size());
  }
  return devices.infos.empty() ? nullptr : &devices.infos;
}

std::shared_ptr<Adapter> open_adapter(int device) {
  Devices& devices = all_devices();
  const std::lock_guard lock(devices.mutex);
  if (device < 0 || static_cast<std::size_t>(device) >= devices.infos.size()) {
    log_warning("there is no device %d; there are %zu", device, devices.infos.size());
    return nullptr;
  }
  const auto index = static_cast<std::size_t>(device);
  std::shared_ptr<Adapter> adapter = devices.open[index].lock();
  if (adapter == nullptr) {
    adapter = Adapter::open(devices.infos[index]);
    devices.open[index] = adapter;
  }
  return adapter;
}

std::uint64_t coarse_clock_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

}  // namespace mrc::nccl
