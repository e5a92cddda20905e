#include "dst/model.h"

#include <utility>

namespace mrc::dst {

Connection& Model::add(Connection connection) {
  connection.uid = size();
  for (std::uint8_t side = 0; side < 2; ++side) {
    const End& end = connection.ends[side];
    by_number_[key(end.host, end.config.number)] = {connection.uid, side};
  }
  return connections_.emplace_back(std::move(connection));
}

bool Model::all_reported(EndRef ref) const {
  const Flow& flow = connections_[ref.connection].flows[ref.side];
  const End& sender = end(ref);
  if (sender.sends_failed) return sender.next_report == flow.messages().size();
  for (std::size_t i = sender.next_report; i < flow.messages().size(); ++i) {
    if (flow.messages()[i].request.signaled || !flow.message_arrived(i)) return false;
  }
  return true;
}

std::optional<EndRef> Model::find(unsigned host, QpNumber number) const {
  const auto entry = by_number_.find(key(host, number));
  if (entry == by_number_.end()) return std::nullopt;
  return entry->second;
}

void Model::remove(EndRef ref) {
  End& gone = end(ref);
  gone.state = EndState::kGone;
  by_number_.erase(key(gone.host, gone.config.number));
}

std::vector<EndRef> Model::ends() const {
  std::vector<EndRef> found;
  for (const Connection& connection : connections_) {
    for (std::uint8_t side = 0; side < 2; ++side) {
      if (connection.ends[side].state != EndState::kGone) found.push_back({connection.uid, side});
    }
  }
  return found;
}

std::vector<EndRef> Model::ends_of(unsigned host) const {
  std::vector<EndRef> found;
  for (const EndRef ref : ends()) {
    if (end(ref).host == host) found.push_back(ref);
  }
  return found;
}

}  // namespace mrc::dst
