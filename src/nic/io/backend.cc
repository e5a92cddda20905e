#include "nic/io/backend.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "nic/io/udp/udp_backend.h"
#include "nic/io/wire/wire_backend.h"

namespace mrc::nic {
namespace {

// A quarter of the processors: the program, the kernel's share of the work and other processes need
// some as well.
constexpr unsigned kProcessorsPerThread = 4;
constexpr unsigned kMaxDefaultThreads = 4;

unsigned usable_processors() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (::sched_getaffinity(0, sizeof(usable), &usable) != 0) return 1;
  return static_cast<unsigned>(CPU_COUNT(&usable));
}

// A cable leads to one engine.
unsigned thread_count(const node::DeviceConfig& config) {
  if (config.backend == node::BackendKind::kWire) return 1;
  if (config.threads != 0) return std::min(config.threads, node::kMaxThreads);
  return std::clamp(usable_processors() / kProcessorsPerThread, 1U, kMaxDefaultThreads);
}

}  // namespace

BackendResult open_backend(const node::DeviceConfig& config) {
  if (config.planes.empty() || config.planes.size() > kMaxPorts) {
    return {.backend = nullptr, .error = config.name + ": a device has 1 to 16 planes"};
  }
  return config.backend == node::BackendKind::kWire ? open_wire_backend(config)
                                                    : open_udp_backend(config);
}

Backends open_backends(const node::DeviceConfig& config, std::string& error) {
  node::DeviceConfig counted = config;
  counted.threads = thread_count(config);
  Backends backends;
  while (backends.size() < counted.threads) {
    BackendResult opened = open_backend(counted);
    if (opened.backend == nullptr) {
      if (backends.empty()) error = std::move(opened.error);
      break;
    }
    backends.push_back(std::move(opened.backend));
  }
  return backends;
}

}  // namespace mrc::nic
