#include "nic/io/wire/wire_tunnel.h"

#include <algorithm>

#include "os/socket_address.h"

namespace mrc::nic {
namespace {

void add(wire::Usid& usid, unsigned more) {
  usid = wire::Usid{static_cast<std::uint16_t>(static_cast<unsigned>(usid) + more)};
}

}  // namespace

WireTunnel::WireTunnel(const node::DeviceConfig& config)
    : routes_(config.srv6_routes), known_(config.planes.size()) {
  std::stable_sort(routes_.begin(), routes_.end(),
                   [](const node::Srv6Route& a, const node::Srv6Route& b) {
                     return a.prefix_bits > b.prefix_bits;
                   });
  blocks_.reserve(config.planes.size());
  for (const node::PlaneConfig& plane : config.planes)
    blocks_.push_back(plane.usid_block);
}

void WireTunnel::prepare(PortId port, std::uint32_t entropy) {
  auto& known = known_[static_cast<std::size_t>(port) - 1];
  if (!routes_.empty() && known.size() < kMaxKnown)
    known.emplace(entropy, static_cast<std::uint16_t>(known.size()));
}

unsigned WireTunnel::choice_of(std::size_t port_index, std::uint32_t entropy,
                               unsigned choices) const {
  const std::uint32_t low = entropy & 0xFFFF;
  if (entropy >> 16 == port_index + 1 && low < choices) return low;
  const auto found = known_[port_index].find(entropy);
  return (found == known_[port_index].end() ? low : found->second) % choices;
}

bool WireTunnel::find_carrier(PortId port, const wire::IpAddress& gid, std::uint32_t entropy,
                              wire::IpAddress& carrier) const {
  if (routes_.empty()) return false;
  if (last_route_ == nullptr || last_gid_ != gid) {
    const auto found =
        std::find_if(routes_.begin(), routes_.end(), [&gid](const node::Srv6Route& route) {
          return os::same_network(route.destination, gid, route.prefix_bits);
        });
    if (found == routes_.end()) return false;
    last_route_ = &*found;
    last_gid_ = gid;
  }
  const std::size_t index = static_cast<std::size_t>(port) - 1;
  auto usids = last_route_->usids;
  if (last_route_->choices > 1) {
    const unsigned choice = choice_of(index, entropy, last_route_->choices);
    add(usids[last_route_->choice_at], choice);
    add(usids[last_route_->follower_at], choice % last_route_->followers);
  }
  carrier = wire::build_carrier(blocks_[index], std::span(usids).first(last_route_->count)).value();
  return true;
}

}  // namespace mrc::nic
