#include "nic/endpoint_requests.h"

#include <algorithm>
#include <utility>

#include "core/endpoint_request.h"
#include "core/rtt.h"
#include "nic/device.h"

namespace mrc::nic {

bool EndpointRequests::add(const Pending& pending, std::uint16_t& id) {
  if (pending_.size() > 0xFFFF) return false;
  while (pending_.count(next_id_) != 0)
    ++next_id_;
  id = next_id_++;
  pending_.emplace(id, pending);
  return true;
}

void EndpointRequests::send(std::uint16_t id, TimeNs now, std::uint8_t vendor_info,
                            Backend& backend) {
  Pending& pending = pending_.at(id);
  pending.sent_at = now;
  wire::Packet packet;
  core::build_endpoint_request(
      now, {.op = pending.op, .id = id, .ports = pending.ports, .vendor_info = vendor_info},
      packet);
  backend.send(pending.route, pending.traffic_class, packet, {});
}

void EndpointRequests::repeat_news(const RequestBatch& batch, TimeNs now, std::uint8_t vendor_info,
                                   Backend& backend) {
  for (const auto& [id, pending] : pending_) {
    if (pending.batch != &batch || pending.op != wire::EndpointOp::kPortStatusUpdate) continue;
    send(id, now, vendor_info, backend);
  }
}

void EndpointRequests::forget(const RequestBatch& batch) {
  std::erase_if(pending_, [&](const auto& entry) { return entry.second.batch == &batch; });
}

bool EndpointRequests::settle(TimeNs now, const Received& received, const wire::Packet& packet) {
  const auto* response = std::get_if<wire::EndpointResponse>(&packet.body);
  const auto id = static_cast<std::uint16_t>(packet.bth.psn.value());
  const auto found = pending_.find(id);
  if (response == nullptr || found == pending_.end()) return false;
  const Pending pending = found->second;
  if (pending.op != response->op || pending.route.peer.gid != received.gid) return false;
  pending_.erase(found);
  const std::lock_guard lock(pending.batch->mutex);
  // A peer whose clock was read before the request came tells more than there was: then, as when it
  // tells nothing, the round trip stands as it is.
  const DurationNs without_service =
      core::round_trip(now, pending.sent_at, response->timestamp_ticks);
  const bool told =
      without_service > 0 && response->timestamp_ticks != core::ticks_at(pending.sent_at);
  // Room was reserved when the batch was made.
  pending.batch->answers->push_back(
      {.id = pending.user_id,
       .port = received.port,
       .rtt_ns = told ? without_service : std::max<DurationNs>(now - pending.sent_at, 1),
       .service_time_subtracted = told});
  if (--pending.batch->missing == 0) pending.batch->answered.notify_all();
  return true;
}

std::optional<std::uint16_t> EndpointRequests::id_behind(const Received& received,
                                                         const wire::Packet& packet) {
  const auto* response = std::get_if<wire::EndpointResponse>(&packet.body);
  if (response == nullptr || response->op != wire::EndpointOp::kPortStatusUpdate) return {};
  const auto believed = static_cast<std::uint16_t>(packet.bth.psn.value());
  const auto refused = std::ranges::find_if(pending_, [&](const auto& entry) {
    const auto& [id, pending] = entry;
    // Exactly half a circle counts as ahead, as for the engine.
    const auto ahead = static_cast<std::uint16_t>(believed - id);
    return pending.op == response->op && pending.route.peer.gid == received.gid && ahead > 0 &&
           ahead <= 0x8000 && pending.refusals < kMostRefusals;
  });
  if (refused == pending_.end() || pending_.size() > 0xFFFF) return {};
  auto request = pending_.extract(refused);
  // The second refusal may be a challenge, which only the very next id meets.
  const bool again = request.mapped().refusals++ > 0;
  auto id = static_cast<std::uint16_t>(believed + (again ? 1 : kRoom));
  while (pending_.count(id) != 0)
    ++id;
  request.key() = id;
  pending_.insert(std::move(request));
  return id;
}

}  // namespace mrc::nic
