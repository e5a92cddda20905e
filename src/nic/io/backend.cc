#include "nic/io/backend.h"

#include <algorithm>
#include <utility>

#include "nic/io/udp/udp_backend.h"
#include "nic/io/wire/wire_backend.h"
#include "os/processors.h"

namespace mrc::nic {
namespace {

// Half of a process's share of the processors: the program and the kernel's part of the work need
// the rest. Where no launcher says how many share the host, there are two.
constexpr unsigned kProcessorsPerThread = 2;
constexpr unsigned kAssumedRanks = 2;
constexpr unsigned kMaxDefaultThreads = 4;

unsigned default_threads() {
  const unsigned told = os::ranks_on_host();
  const unsigned ranks = told != 0 ? told : kAssumedRanks;
  return std::clamp(os::usable_processors() / ranks / kProcessorsPerThread, 1U, kMaxDefaultThreads);
}

// A cable leads to one engine.
unsigned thread_count(const node::DeviceConfig& config) {
  if (config.backend == node::BackendKind::kWire) return 1;
  if (config.threads != 0) return std::min(config.threads, node::kMaxThreads);
  return default_threads();
}

}  // namespace

void Backend::send_run(const Route& route, core::TrafficClass traffic_class,
                       const wire::Packet& first, std::span<const std::byte> payload,
                       unsigned count) {
  wire::Packet packet = first;
  const std::size_t each = payload.size() / count;
  for (unsigned i = 0; i < count; ++i) {
    const std::span<const std::byte> piece = payload.subspan(i * each, each);
    send(route, traffic_class, packet, {&piece, 1});
    wire::move_on(packet, 1, static_cast<std::uint32_t>(each));
  }
}

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
