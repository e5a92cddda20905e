#include "context.h"

#include <algorithm>
#include <utility>

#include "random.h"

namespace mrc::nccl {

std::shared_ptr<Adapter> Context::adapter(int device) {
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(device);
  if (found != kept_.end()) return found->second;
  std::shared_ptr<Adapter> adapter = open_adapter(device);
  if (adapter != nullptr && keeps_devices_) kept_.emplace(device, adapter);
  return adapter;
}

void Context::set_attributes(const NetAttributes& attributes) {
  send_peers_ = attributes.send.max_concurrent_peers;
  receive_peers_ = attributes.receive.max_concurrent_peers;
  flows_per_peer_ = attributes.send.max_flows_per_peer;
}

mrc_qp_hint_attr Context::hint() const {
  mrc_qp_hint_attr attr{};
  attr.num_qps_per_peer = std::max(flows_per_peer_.load(), 0);
  attr.num_send_peers = std::max(send_peers_.load(), 0);
  // All ranks run the same algorithm: our peer hears from as many as we do.
  attr.num_remote_recv_peers = std::max(receive_peers_.load(), 0);
  return attr;
}

std::uint64_t Context::add(std::unique_ptr<Connector> connector) {
  const std::lock_guard lock(mutex_);
  std::uint64_t token = random_number();
  while (connectors_.contains(token))
    token = random_number();
  connectors_.emplace(token, std::move(connector));
  return token;
}

Connector* Context::find(std::uint64_t token) {
  const std::lock_guard lock(mutex_);
  const auto found = connectors_.find(token);
  return found == connectors_.end() ? nullptr : found->second.get();
}

void Context::remove(std::uint64_t token) {
  std::unique_ptr<Connector> gone;
  const std::lock_guard lock(mutex_);
  const auto found = connectors_.find(token);
  if (found == connectors_.end()) return;
  gone = std::move(found->second);
  connectors_.erase(found);
}

}  // namespace mrc::nccl
