// What a sender did with each packet and what it has been told about it: the observer's side of
// loss recovery. Nothing in here decides whether a packet is lost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/types.h"
#include "core/endpoint.h"

namespace mrc::dst {

class SendHistory {
 public:
  void on_sent(TimeNs now, std::uint64_t packet, EvIndex ev, core::TrafficClass traffic_class) {
    if (packet == packets_.size()) packets_.emplace_back();
    Entry& entry = packets_[packet];
    entry.ev = ev;
    entry.sent_at = now;
    entry.lane = lane(ev, traffic_class);
    entry.order = ++order_;
    if (entry.lane >= lanes_.size()) lanes_.resize(entry.lane + 1);
    lanes_[entry.lane].sent.push_back({packet, entry.order});
    entry.refused = false;
    ++entry.copies;
  }
  // A NACK named the packet.
  void refuse(std::uint64_t packet) { packets_[packet].refused = true; }

  // The peer said that it has the packet. True when that is news. `given_up`: of all that was not
  // told so many are to be sent again.
  bool tell(std::uint64_t packet, std::uint64_t given_up) {
    Entry& entry = packets_[packet];
    if (entry.told) return false;
    entry.told = true;
    // Of a packet that was sent again nobody knows which copy arrived.
    if (entry.copies == 1) overtake(lanes_[entry.lane], entry.order, given_up);
    return true;
  }

  std::uint64_t size() const { return packets_.size(); }
  std::uint64_t transmissions() const { return order_; }
  bool told(std::uint64_t packet) const { return packets_[packet].told; }
  bool sent_once(std::uint64_t packet) const { return packets_[packet].copies == 1; }
  EvIndex last_ev(std::uint64_t packet) const { return packets_[packet].ev; }
  TimeNs sent_at(std::uint64_t packet) const { return packets_[packet].sent_at; }  // last
  // A packet that was sent later on the same path in the same class has arrived, and nothing else
  // was said about this one.
  bool overtaken(std::uint64_t packet) const {
    const Entry& entry = packets_[packet];
    return !entry.refused && lanes_[entry.lane].newest_told > entry.order;
  }
  // So many at most had been given up when they were overtaken: they were judged without that, and
  // are sent when the window has room.
  std::uint64_t overtaken_after_given_up() const { return overtaken_after_given_up_; }

 private:
  struct Sent {
    std::uint64_t packet = 0;
    std::uint64_t order = 0;
  };
  struct Lane {
    std::uint64_t newest_told = 0;  // its order
    std::deque<Sent> sent;          // after the newest told
  };
  struct Entry {
    EvIndex ev{};
    TimeNs sent_at = 0;  // by its host's clock
    std::uint32_t lane = 0;
    std::uint64_t order = 0;
    std::uint32_t copies = 0;
    bool told = false;
    bool refused = false;
  };
  void overtake(Lane& lane, std::uint64_t order, std::uint64_t given_up) {
    std::uint64_t overtaken = 0;
    for (; !lane.sent.empty() && lane.sent.front().order <= order; lane.sent.pop_front()) {
      const Entry& entry = packets_[lane.sent.front().packet];
      const bool last_copy = entry.order == lane.sent.front().order;
      if (last_copy && !entry.told && !entry.refused) ++overtaken;
    }
    lane.newest_told = std::max(lane.newest_told, order);
    overtaken_after_given_up_ += std::min(overtaken, given_up);
  }
  static std::uint32_t lane(EvIndex ev, core::TrafficClass traffic_class) {
    return 4 * static_cast<std::uint32_t>(ev) + static_cast<std::uint32_t>(traffic_class);
  }

  std::vector<Entry> packets_;
  std::vector<Lane> lanes_;
  std::uint64_t overtaken_after_given_up_ = 0;
  std::uint64_t order_ = 0;
};

}  // namespace mrc::dst
