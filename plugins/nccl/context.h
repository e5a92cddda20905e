// What belongs to one communicator of NCCL: settings for its connections, devices it keeps open.
//
// Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "adapter.h"
#include "connector.h"
#include "mrc.h"
#include "nccl_net.h"

namespace mrc::nccl {

class Context {
 public:
  // `keeps_devices`: until the context ends. NCCL's older interfaces never end one.
  Context(int traffic_class, bool keeps_devices)
      : traffic_class_(traffic_class), keeps_devices_(keeps_devices) {}

  std::shared_ptr<Adapter> adapter(int device);
  int traffic_class() const { return traffic_class_; }

  void set_attributes(const NetAttributes& attributes);
  // What new connections tell the device about their traffic; all 0 when nothing is known.
  mrc_qp_hint_attr hint() const;

  // Connections under way, by the number that stands in the handle.
  std::uint64_t add(std::unique_ptr<Connector> connector);
  // None when the number is not known. The connector stays and may be used by the calling thread.
  Connector* find(std::uint64_t token);
  void remove(std::uint64_t token);

 private:
  const int traffic_class_;
  const bool keeps_devices_;
  std::atomic<std::int32_t> send_peers_{-1};
  std::atomic<std::int32_t> receive_peers_{-1};
  std::atomic<std::int32_t> flows_per_peer_{-1};
  std::mutex mutex_;
  std::map<int, std::shared_ptr<Adapter>> kept_;
  std::map<std::uint64_t, std::unique_ptr<Connector>> connectors_;
};

}  // namespace mrc::nccl
