// Planes on which a peer does not answer though our port is up: what nobody would be told of
// otherwise, since traffic goes on over the others.
//
// Queue pairs say when they have lost their last path on a plane and when one is back. Somebody
// who can print asks from time to time. A plane is news once it has been gone for a second, so that
// short faults, of which there may be thousands, make no lines; and its return is news if its loss
// was. A peer that answers nowhere is away, which is no news of planes.
//
// Any thread. The lock is a leaf: it may be taken under an engine lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "base/types.h"
#include "wire/ip_address.h"

namespace mrc::nic {

struct PlaneNews {
  wire::IpAddress peer;
  PortId port{1};
  bool lost = true;  // false: it is back
  PortMask silent;   // all planes on which the peer does not answer
};

class PlaneWatch {
 public:
  static constexpr DurationNs kNewsAfterNs = kSecondNs;
  // Peers times planes; more are not told apart, and nobody reads so many lines.
  static constexpr std::size_t kMaxWatched = 1'024;

  // One queue pair's word; each lost() is followed by one back(), or by one forget() when the queue
  // pair goes without having heard anything. Where memory is out there is no news.
  void lost(const wire::IpAddress& peer, PortId port, TimeNs now);
  void back(const wire::IpAddress& peer, PortId port);
  void forget(const wire::IpAddress& peer, PortId port);

  // Cheap, for every poll: whether take() may have something, now or soon.
  bool watches() const { return watches_.load(std::memory_order_relaxed); }
  // `up` are our ports that are up; the others have events of their own.
  std::vector<PlaneNews> take(TimeNs now, PortMask up);

 private:
  struct Key {
    wire::IpAddress peer;
    PortId port;
    // NOLINTNEXTLINE(modernize-use-nullptr): as in wire/ip_address.h
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Silence {
    TimeNs since = 0;
    unsigned queue_pairs = 0;  // 0: back, and that is still to be told
    bool told = false;
  };
  using Silences = std::map<Key, Silence>;

  // The silence that has ended with this queue pair, if it has.
  Silences::iterator end_one(const wire::IpAddress& peer, PortId port);
  PortMask silent_planes(const wire::IpAddress& peer) const;

  std::mutex mutex_;
  Silences silences_;
  std::atomic<bool> watches_{false};
};

}  // namespace mrc::nic
