#include "nic/io/udp/udp_plane.h"

#include <algorithm>
#include <cerrno>

#include "base/prng.h"
#include "node/plane_address.h"

namespace mrc::nic {
namespace {

constexpr std::uint16_t kFirstFreePort = 1024;      // below: privileged
constexpr std::uint16_t kFirstSubstitute = 0xC000;  // the dynamic ports
constexpr std::uint32_t kSubstitutes = 0x1'0000 - kFirstSubstitute;
constexpr unsigned kSubstituteAttempts = 64;

}  // namespace

int UdpPlane::open(const UdpPlaneOptions& options) {
  if (!node::has_address(config_)) {
    options_ = options;
    return 0;
  }
  SocketResult result = open_receive_socket(
      os::make_socket_address(config_.address, options.receive_port, scope_), options.shared);
  if (result.error != 0) return result.error;
  options_ = options;
  receive_ = node::node_files::LifeDescriptor(std::move(result.socket));
  return 0;
}

int UdpPlane::rebind(const wire::IpAddress& address, unsigned prefix_bits) {
  config_.address = address;
  config_.prefix_bits = prefix_bits;
  receive_ = {};
  for (SendSocket& send : sends_) {
    if (send.source_port == 0) continue;
    send.socket.close();
    send.watched = false;
    send.flow_labels.clear();
    SocketResult result = open_send_socket(
        os::make_socket_address(address, send.source_port, scope_), options_.traffic_byte);
    send.socket = std::move(result.socket);
  }
  blocked = false;
  overflow = 0;
  return open(options_);
}

bool UdpPlane::is_reserved(std::uint16_t port) const {
  return port < kFirstFreePort ||
         (port >= options_.first_reserved && port <= options_.last_reserved);
}

int UdpPlane::find_port(std::uint16_t port) const {
  const auto found = socket_of_port_.find(port);
  return found == socket_of_port_.end() ? -1 : found->second;
}

std::uint16_t UdpPlane::free_position() {
  const auto is_free = [](const SendSocket& send) { return send.source_port == 0; };
  auto found = std::find_if(sends_.begin(), sends_.end(), is_free);
  if (found == sends_.end()) found = sends_.emplace(sends_.end());
  return static_cast<std::uint16_t>(found - sends_.begin());
}

// Any that is open, always the same for a port; -1 when none is.
int UdpPlane::stand_in(std::uint16_t port) const {
  const std::size_t first = sends_.empty() ? 0 : mix64(port) % sends_.size();
  for (std::size_t i = 0; i < sends_.size(); ++i) {
    const std::size_t position = (first + i) % sends_.size();
    if (sends_[position].source_port != 0) return static_cast<int>(position);
  }
  return -1;
}

int UdpPlane::add_socket(std::uint16_t port, UsedPorts& used) {
  SocketResult result = open_send_socket(os::make_socket_address(config_.address, port, scope_),
                                         options_.traffic_byte);
  if (result.error != 0) return -1;
  const std::uint16_t position = free_position();
  sends_[position] = {.socket = std::move(result.socket), .source_port = port, .flow_labels = {}};
  ++open_sends_;
  socket_of_port_[port] = position;
  used.set(port);
  return position;
}

int UdpPlane::add_substitute(std::uint32_t wish, UsedPorts& used) {
  for (unsigned attempt = 0; attempt < kSubstituteAttempts; ++attempt) {
    const std::uint64_t draw = mix64(std::uint64_t{wish} << 32 | attempt);
    const auto candidate = static_cast<std::uint16_t>(kFirstSubstitute + draw % kSubstitutes);
    if (is_reserved(candidate) || used.test(candidate)) continue;
    const int position = add_socket(candidate, used);
    if (position >= 0) return position;
  }
  return -1;
}

int UdpPlane::socket_for(std::uint16_t port, UsedPorts& used) {
  const int known = find_port(port);
  if (known >= 0) return known;
  int position = -1;
  if (has_room()) {
    if (!is_reserved(port)) position = add_socket(port, used);
    if (position < 0) position = add_substitute(port, used);
  }
  if (position < 0) return stand_in(port);
  socket_of_port_[port] = static_cast<std::uint16_t>(position);
  return position;
}

Result<std::uint32_t> UdpPlane::prepare_path(std::uint32_t entropy, UsedPorts& used) {
  const auto known = paths_.find(entropy);
  if (known != paths_.end()) return known->second;
  const auto port = static_cast<std::uint16_t>(entropy & 0xFFFF);
  const auto label = static_cast<std::uint16_t>(entropy >> 16);
  const int position = socket_for(port, used);
  if (position < 0) return Status(ErrorCode::kNoSpace, "no socket for the path");
  std::uint32_t carried = carried_by(sends_[static_cast<std::size_t>(position)], label);
  if (carried_.contains(carried) && has_room()) {
    const int other = add_substitute(entropy, used);
    if (other >= 0) carried = carried_by(sends_[static_cast<std::size_t>(other)], label);
  }
  paths_[entropy] = carried;
  carried_.insert(carried);
  return carried;
}

bool UdpPlane::keep_paths(const std::set<std::uint32_t>& carried) {
  std::erase_if(paths_, [&](const auto& path) { return !carried.contains(path.second); });
  carried_.clear();
  std::set<std::uint16_t> ports;
  for (const auto& [wish, entropy] : paths_) {
    carried_.insert(entropy);
    ports.insert(static_cast<std::uint16_t>(entropy & 0xFFFF));
  }
  const unsigned before = open_sends_;
  for (SendSocket& send : sends_) {
    if (send.source_port == 0) continue;
    if (!ports.contains(send.source_port)) {
      send = {};
      --open_sends_;
      continue;
    }
    std::erase_if(send.flow_labels, [&](std::uint16_t label) {
      if (carried_.contains(std::uint32_t{label} << 16 | send.source_port)) return false;
      release_flow_label(send.socket.get(), label);
      return true;
    });
  }
  std::erase_if(socket_of_port_,
                [&](const auto& entry) { return sends_[entry.second].source_port == 0; });
  return open_sends_ < before;
}

// Where the kernel grants the label, or there is none to grant.
std::uint32_t UdpPlane::carried_by(SendSocket& send, std::uint16_t label) const {
  if (config_.address.is_v4 || label == 0) return send.source_port;
  const auto known = std::find(send.flow_labels.begin(), send.flow_labels.end(), label);
  if (known == send.flow_labels.end()) {
    if (!lease_flow_label(send.socket.get(), label)) return send.source_port;
    send.flow_labels.push_back(label);
  }
  return std::uint32_t{label} << 16 | send.source_port;
}

int UdpPlane::find_send_socket(std::uint32_t entropy, UsedPorts& used) {
  const auto port = static_cast<std::uint16_t>(entropy & 0xFFFF);
  const int known = find_port(port);
  if (known >= 0) return known;
  return open_sends_ == 0 ? socket_for(port, used) : stand_in(port);
}

std::uint16_t UdpPlane::flow_label(unsigned socket, std::uint32_t entropy) const {
  const auto label = static_cast<std::uint16_t>(entropy >> 16);
  const auto& labels = sends_[socket].flow_labels;
  return std::find(labels.begin(), labels.end(), label) == labels.end() ? std::uint16_t{0} : label;
}

}  // namespace mrc::nic
