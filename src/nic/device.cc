// Devices of this process: opening, sharing, ending; memory, completion queues, queue pairs.
#include "nic/device.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <tuple>

#include "nic/completion_queue.h"
#include "nic/device_impl.h"
#include "nic/queue_pair.h"
#include "nic/telemetry_publisher.h"
#include "os/errors.h"

namespace mrc::nic {
namespace {

constexpr unsigned kMaxQps = 16'384;
constexpr unsigned kMaxPeers = 4'096;
constexpr unsigned kEventCapacity = 4'096;
constexpr unsigned kControlCapacity = 4'096;
// How late a process may be through no fault of the network: others had its processor.
constexpr DurationNs kJitterNs = kMillisecondNs;
constexpr DurationNs kReverseCheckNs = 20 * kMillisecondNs;

// Keys that peers must not guess.
class KernelKeys final : public core::RandomSource {
 public:
  std::uint32_t next32() override { return os::KernelRandom().next32(); }
};

// What makes two configurations the same device.
using DeviceKey = std::tuple<std::string, std::string, std::uint16_t, wire::IpAddress>;

struct Registry {
  ForkGuard fork_guard;
  std::mutex mutex;
  std::map<DeviceKey, std::weak_ptr<Device>> devices;
};

// Never destroyed: a device may end after the destructors of globals have begun to run. A child
// process starts with a registry of its own.
Registry& registry() {
  static std::atomic<Registry*> current{new Registry};
  Registry* known = current.load();
  if (!known->fork_guard.in_child()) return *known;
  auto* fresh = new Registry;
  if (current.compare_exchange_strong(known, fresh)) return *fresh;
  delete fresh;
  return *known;
}

// Programs end without closing what they opened. Whoever holds the registry now may never let go.
void on_exit() {
  Registry& known = registry();
  const std::unique_lock lock(known.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (const auto& entry : known.devices) {
    if (const std::shared_ptr<Device> device = entry.second.lock()) {
      const EngineGroup& group = static_cast<DeviceImpl&>(*device).group();
      for (const auto& engine : group.engines)
        engine->on_exit();
      if (group.telemetry) group.telemetry->remove();
    }
  }
}

}  // namespace

std::shared_ptr<Device> Device::open(const node::DeviceConfig& config, std::string& error) {
  error.clear();
  if (config.planes.empty() || config.planes.size() > kMaxPorts) {
    error = "device " + config.name + ": needs 1 to 16 planes";
    return nullptr;
  }
  try {
    [[maybe_unused]] static const int kRegistered = std::atexit(&on_exit);
    Registry& known = registry();
    const std::lock_guard lock(known.mutex);
    std::weak_ptr<Device>& place = known.devices[{config.name, config.directory, config.udp_port,
                                                  config.planes.front().address}];
    if (std::shared_ptr<Device> shared = place.lock()) return shared;
    Backends backends = open_backends(config, error);
    if (backends.empty()) {
      error = "device " + config.name + ": " + error;
      return nullptr;
    }
    std::shared_ptr<DeviceImpl> made = DeviceImpl::create(config, std::move(backends), error);
    place = made;
    return made;
  } catch (const std::bad_alloc&) {
    error = "out of memory";
    return nullptr;
  }
}

// --- Life ---

DeviceImpl::DeviceImpl(const node::DeviceConfig& config, std::unique_ptr<node::NodeState> node)
    : config_(config), group_(std::make_unique<EngineGroup>(std::move(node))) {
  limits_.max_qps = kMaxQps;
  limits_.max_regions = RegionTable::kMaxRegions;
  limits_.max_buffers = kMaxGather;
}

std::shared_ptr<DeviceImpl> DeviceImpl::create(const node::DeviceConfig& config, Backends backends,
                                               std::string& error) {
  std::unique_ptr<node::NodeState> node = node::NodeState::open(config.directory, error);
  if (!node) {
    error = "device " + config.name + ": " + error;
    return nullptr;
  }
  std::shared_ptr<DeviceImpl> device(new DeviceImpl(config, std::move(node)));
  const int started = device->start(std::move(backends), error);
  if (started == 0) return device;
  device.reset();
  errno = started;  // whatever clearing up left there
  return nullptr;
}

// The lead starts last: it brings the node's state to all of them.
int DeviceImpl::start(Backends backends, std::string& error) {
  path_mtu_ = backends.front()->path_mtu();
  port_bits_per_second_ = backends.front()->port_bits_per_second();
  port_count_ = backends.front()->port_count();
  for (std::unique_ptr<Backend>& backend : backends) {
    const int added = add_engine(std::move(backend), error);
    if (added != 0) return added;
  }
  group_->telemetry = TelemetryPublisher::open(config_);
  int started = 0;
  for (std::size_t i = group_->engines.size(); i > 0 && started == 0; --i) {
    started = group_->engines[i - 1]->start("mrc-" + config_.name);
  }
  if (started != 0) {
    error = "device " + config_.name + ": cannot start: " + std::strerror(started);
  }
  return started;
}

int DeviceImpl::add_engine(std::unique_ptr<Backend> backend, std::string& error) {
  os::KernelRandom random;
  Result<std::unique_ptr<core::Endpoint>> endpoint =
      core::Endpoint::create({.port_count = port_count_,
                              .port_bits_per_second = port_bits_per_second_,
                              .seed = random.next64(),
                              .max_qps = kMaxQps,
                              .max_peers = kMaxPeers,
                              .max_regions = limits_.max_regions,
                              .event_capacity = kEventCapacity,
                              .control_capacity = kControlCapacity,
                              .add_service_time = config_.dialect.service_time,
                              .jitter_ns = kJitterNs,
                              .reverse_check_ns = kReverseCheckNs,
                              // Of others, such as cards, nothing is known.
                              .strict = config_.dialect.processes == wire::Processes::kByUdpPort,
                              .group_answers = true});
  if (!endpoint.ok()) {
    error = "device " + config_.name + ": " + endpoint.status().what();
    return os::errno_of(endpoint.status());
  }
  group_->engines.push_back(std::make_unique<Engine>(
      EngineParts{.endpoint = std::move(endpoint).value(),
                  .backend = std::move(backend),
                  .group = group_.get(),
                  .index = static_cast<unsigned>(group_->engines.size()),
                  .paths = {config_.evs_per_port, config_.active_evs_per_port},
                  .spray_quantum = config_.spray_quantum,
                  .trimming = config_.trimming,
                  .max_peers = kMaxPeers,
                  .udp_port = config_.udp_port,
                  .dialect = config_.dialect}));
  return 0;
}

// A child process has no thread to end, and nothing of this is its own: it stays as it is.
DeviceImpl::~DeviceImpl() {
  if (in_child()) static_cast<void>(group_.release());
}

bool DeviceImpl::port_active(PortId port) const {
  const auto number = static_cast<unsigned>(port);
  if (in_child() || number == 0 || number > port_count_) return false;
  return group_->lead().active_ports().contains(port);
}

// --- Memory ---

int DeviceImpl::register_memory(std::uint32_t domain, void* address, std::size_t length,
                                std::uint64_t io_address, bool local_write, bool remote_write,
                                MemoryKeys& out) {
  if (in_child()) return EIO;
  const auto start = reinterpret_cast<std::uintptr_t>(address);
  if (length > 0 && start + (length - 1) < start) return EINVAL;
  // As in verbs: who lets peers write must be allowed to write.
  if (remote_write && !local_write) return EINVAL;
  try {
    const GroupLock lock(*group_);
    const Result<Rkey> remote = register_everywhere({.address = io_address,
                                                     .length = length,
                                                     .domain = ProtectionDomain{domain},
                                                     .remote_write = remote_write});
    if (!remote.ok()) return os::errno_of(remote.status());
    out.remote = static_cast<std::uint32_t>(remote.value());
    out.local = group_->regions.add({.address = static_cast<const std::byte*>(address),
                                     .length = length,
                                     .domain = domain,
                                     .local_write = local_write,
                                     .io_address = io_address,
                                     .remote_key = out.remote},
                                    group_->lead().pump().random());
    if (out.local != 0) return 0;
    [[maybe_unused]] const Status undone = invalidate_everywhere(remote.value());
    return ENOMEM;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

// Their tables hold the same keys, so that a key which is free in one is free in all.
Result<Rkey> DeviceImpl::register_everywhere(const core::MemoryRegion& region) {
  KernelKeys keys;
  Result<Rkey> key = group_->lead().pump().endpoint().register_memory(region, keys);
  for (std::size_t i = 1; key.ok() && i < group_->engines.size(); ++i) {
    key = group_->engines[i]->pump().endpoint().register_memory(region, key.value());
  }
  return key;
}

Status DeviceImpl::invalidate_everywhere(Rkey key) {
  Status first;
  for (const auto& engine : group_->engines) {
    const Status gone = engine->pump().endpoint().invalidate_memory(key);
    if (first.ok()) first = gone;
  }
  return first;
}

int DeviceImpl::deregister_memory(const MemoryKeys& keys) {
  if (in_child()) return EIO;
  const GroupLock lock(*group_);
  Region region;
  if (!group_->regions.find(keys.local, region) || region.remote_key != keys.remote) return EINVAL;
  const Status gone = invalidate_everywhere(Rkey{keys.remote});
  group_->regions.remove(keys.local);
  for (const auto& engine : group_->engines)
    engine->pump().forget_held(keys.remote);
  return os::errno_of(gone);
}

// --- Queues ---

int DeviceImpl::create_completion_queue(unsigned depth, void* cookie,
                                        std::shared_ptr<CompletionChannel> channel,
                                        std::unique_ptr<CompletionQueue>& out) {
  if (in_child()) return EIO;
  if (depth == 0 || depth > limits_.max_cq_depth) return EINVAL;
  try {
    out = std::make_unique<CompletionQueueImpl>(
        shared_from_this(), depth, cookie,
        std::static_pointer_cast<CompletionChannelImpl>(std::move(channel)));
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  return 0;
}

// A queue that can hold nothing is of no use to anybody; zero means the least we have.
int DeviceImpl::grant(QpSetup& setup) const {
  const auto* send_cq = static_cast<CompletionQueueImpl*>(setup.send_cq);
  const auto* receive_cq = static_cast<CompletionQueueImpl*>(setup.receive_cq);
  if (send_cq == nullptr || receive_cq == nullptr) return EINVAL;
  if (send_cq->device() != this || receive_cq->device() != this) return EINVAL;
  if (setup.max_sends > limits_.max_sends || setup.max_receives > limits_.max_sends) return EINVAL;
  if (setup.max_send_buffers > limits_.max_buffers) return EINVAL;
  if (setup.max_receive_buffers > limits_.max_buffers) return EINVAL;
  if (setup.max_inline > limits_.max_inline) return EINVAL;
  setup.max_sends = std::max(setup.max_sends, 1U);
  setup.max_send_buffers = std::max(setup.max_send_buffers, 1U);
  // As cards do: a known plug-in asks for 64 bytes and then posts up to 512.
  if (setup.max_inline > 0) setup.max_inline = limits_.max_inline;
  return 0;
}

int DeviceImpl::create_queue_pair(QpSetup& setup, std::unique_ptr<QueuePair>& out) {
  if (in_child()) return EIO;
  QpSetup granted = setup;
  const int refused = grant(granted);
  if (refused != 0) return refused;
  try {
    auto made = std::make_unique<QueuePairImpl>(shared_from_this(), granted);
    int entered = 0;
    {
      const EngineGuard guard(made->engine());
      entered = made->enter();
    }
    if (entered != 0) return entered;
    setup = granted;
    out = std::move(made);
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  return 0;
}

std::unique_ptr<AsyncEvents> DeviceImpl::subscribe() {
  if (in_child()) return nullptr;
  return group_->async->subscribe();
}

}  // namespace mrc::nic
