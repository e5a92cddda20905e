// The one implementation of Device, and the way tests bring a back end of their own.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "nic/device.h"
#include "nic/engine/engine.h"
#include "nic/engine/engine_group.h"
#include "nic/fork_guard.h"

namespace mrc::nic {

class DeviceImpl final : public Device, public std::enable_shared_from_this<DeviceImpl> {
 public:
  // A device of its own, not shared with others of that configuration, with an engine for each of
  // the back ends, 1 to kMaxThreads. `error` as Device::open.
  static std::shared_ptr<DeviceImpl> create(const node::DeviceConfig& config, Backends backends,
                                            std::string& error);
  ~DeviceImpl() override;
  DeviceImpl(const DeviceImpl&) = delete;
  DeviceImpl& operator=(const DeviceImpl&) = delete;

  const node::DeviceConfig& config() const override { return config_; }
  const DeviceLimits& limits() const override { return limits_; }
  wire::IpAddress gid() const override { return config_.planes.front().address; }
  bool port_active(PortId port) const override;
  std::uint32_t path_mtu() const override { return path_mtu_; }
  std::uint64_t port_bits_per_second() const override { return port_bits_per_second_; }
  node::NodeState& node() override { return *group_->node; }
  std::uint32_t new_domain() override { return next_domain_.fetch_add(1); }
  int register_memory(std::uint32_t domain, void* address, std::size_t length,
                      std::uint64_t io_address, bool local_write, bool remote_write,
                      MemoryKeys& out) override;
  int deregister_memory(const MemoryKeys& keys) override;
  int create_completion_queue(unsigned depth, void* cookie,
                              std::shared_ptr<CompletionChannel> channel,
                              std::unique_ptr<CompletionQueue>& out) override;
  int create_queue_pair(QpSetup& setup, std::unique_ptr<QueuePair>& out) override;
  std::unique_ptr<AsyncEvents> subscribe() override;
  int endpoint_requests(std::span<const EndpointRequest> requests, DurationNs timeout_ns,
                        std::vector<EndpointAnswer>& answers) override;
  DeviceReport report() override;
  PlaneWatch& planes() override { return group_->planes; }

  EngineGroup& group() { return *group_; }
  bool in_child() const { return fork_guard_.in_child(); }

 private:
  DeviceImpl(const node::DeviceConfig& config, std::unique_ptr<node::NodeState> node);
  int start(Backends backends, std::string& error);
  int add_engine(std::unique_ptr<Backend> backend, std::string& error);
  // Under the locks of all engines.
  Result<Rkey> register_everywhere(const core::MemoryRegion& region);
  Status invalidate_everywhere(Rkey key);
  int grant(QpSetup& setup) const;
  int send_requests(std::span<const EndpointRequest> requests, RequestBatch& batch);
  bool wait_for_answers(RequestBatch& batch, DurationNs timeout_ns);
  DeviceReport build_report();

  ForkGuard fork_guard_;
  node::DeviceConfig config_;
  DeviceLimits limits_;
  std::uint32_t path_mtu_ = 0;
  std::uint64_t port_bits_per_second_ = 0;
  unsigned port_count_ = 0;
  std::atomic<std::uint32_t> next_domain_{1};
  std::atomic<unsigned> cq_count_{0};
  std::unique_ptr<EngineGroup> group_;
};

}  // namespace mrc::nic
