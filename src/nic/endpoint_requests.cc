#include "nic/endpoint_requests.h"

#include <algorithm>

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

void EndpointRequests::forget(const RequestBatch& batch) {
  std::erase_if(pending_, [&](const auto& entry) { return entry.second.batch == &batch; });
}

bool EndpointRequests::settle(TimeNs now, const Received& received, const wire::Packet& packet) {
  const auto* response = std::get_if<wire::EndpointResponse>(&packet.body);
  const auto id = static_cast<std::uint16_t>(packet.bth.psn.value());
  const auto found = pending_.find(id);
  if (response == nullptr || found == pending_.end()) return false;
  const Pending pending = found->second;
  if (pending.op != response->op || pending.peer.gid != received.gid) return false;
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

}  // namespace mrc::nic
