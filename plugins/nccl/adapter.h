// MRC devices: what NCCL is told about them, and those that are open.
//
// A device is open while a connection or a listener uses it, or a communicator that once did lives;
// with the last of them its engine thread ends.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "address.h"
#include "mrc.h"
#include "nccl_net.h"

namespace mrc::nccl {

struct DeviceInfo {
  std::string name;
  std::string interface;  // of the first plane; empty when not known
  std::string pci_path;   // empty: a virtual one
  std::uint64_t guid = 0;
  Address gid;
  unsigned planes = 1;
  int speed_mbit = 0;  // all planes together, as far as software can use it
  std::uint8_t path_mtu = IBV_MTU_1024;
  std::size_t max_message_bytes = 0;
  std::uint16_t max_immediates = 0;
  std::uint8_t max_window = 0;     // units of 128 packets
  std::uint32_t capabilities = 0;  // enum mrc_device_cap
};

class Adapter {
 public:
  static std::shared_ptr<Adapter> open(const DeviceInfo& info);
  ~Adapter();
  Adapter(const Adapter&) = delete;
  Adapter& operator=(const Adapter&) = delete;

  const DeviceInfo& info() const { return info_; }
  ibv_context* verbs() const { return verbs_; }
  mrc_context* mrc() const { return mrc_; }

  // Tells the user when a plane went down or came back. Cheap; looks now and then. Any thread.
  void watch_planes();

 private:
  explicit Adapter(const DeviceInfo& info) : info_(info) {}
  std::uint32_t planes_up() const;

  DeviceInfo info_;
  ibv_context* verbs_ = nullptr;
  mrc_context* mrc_ = nullptr;
  std::atomic<std::uint64_t> next_look_ms_{0};
  std::atomic<std::uint32_t> seen_up_{0};
};

// The devices of this machine, found on the first call that succeeds and then the same for ever.
// None: the reason has been logged.
const std::vector<DeviceInfo>* find_devices();

// Opens a device, or shares the one that is open. None: the reason has been logged.
std::shared_ptr<Adapter> open_adapter(int device);

// Milliseconds of a clock that only goes forward; as cheap and coarse as the system has it.
std::uint64_t coarse_clock_ms();

}  // namespace mrc::nccl
