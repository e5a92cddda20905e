#include "nic/plane_watch.h"

#include <new>

namespace mrc::nic {

void PlaneWatch::lost(const wire::IpAddress& peer, PortId port, TimeNs now) {
  const std::lock_guard lock(mutex_);
  try {
    const auto found = silences_.find({peer, port});
    if (found == silences_.end()) {
      if (silences_.size() >= kMaxWatched) return;
      silences_.emplace(Key{peer, port}, Silence{.since = now, .queue_pairs = 1});
    } else {
      ++found->second.queue_pairs;
    }
  } catch (const std::bad_alloc&) {
    return;
  }
  watches_.store(true, std::memory_order_relaxed);
}

void PlaneWatch::back(const wire::IpAddress& peer, PortId port) {
  const std::lock_guard lock(mutex_);
  const auto ended = end_one(peer, port);
  if (ended == silences_.end()) return;
  if (ended->second.told) {
    watches_.store(true, std::memory_order_relaxed);
  } else {
    silences_.erase(ended);
  }
}

void PlaneWatch::forget(const wire::IpAddress& peer, PortId port) {
  const std::lock_guard lock(mutex_);
  const auto ended = end_one(peer, port);
  if (ended != silences_.end()) silences_.erase(ended);
}

PlaneWatch::Silences::iterator PlaneWatch::end_one(const wire::IpAddress& peer, PortId port) {
  const auto found = silences_.find({peer, port});
  const bool known = found != silences_.end() && found->second.queue_pairs > 0;
  return known && --found->second.queue_pairs == 0 ? found : silences_.end();
}

PortMask PlaneWatch::silent_planes(const wire::IpAddress& peer) const {
  PortMask planes;
  for (auto at = silences_.lower_bound({peer, PortId{0}});
       at != silences_.end() && at->first.peer == peer; ++at) {
    if (at->second.queue_pairs > 0) planes = planes.with(at->first.port);
  }
  return planes;
}

std::vector<PlaneNews> PlaneWatch::take(TimeNs now, PortMask up) {
  const std::lock_guard lock(mutex_);
  std::vector<PlaneNews> news;
  bool more = false;
  for (auto at = silences_.begin(); at != silences_.end();) {
    const Key& key = at->first;
    Silence& silence = at->second;
    const bool back = silence.queue_pairs == 0;
    const PortMask silent = silent_planes(key.peer);
    const bool answers = up.contains(key.port) && !(up - silent).empty();
    const bool due = back || (answers && !silence.told && now - silence.since >= kNewsAfterNs);
    if (due) news.push_back({key.peer, key.port, !back, silent});
    if (back) {
      at = silences_.erase(at);
      continue;
    }
    silence.told = silence.told || due;
    more = more || !silence.told;
    ++at;
  }
  watches_.store(more, std::memory_order_relaxed);
  return news;
}

}  // namespace mrc::nic
