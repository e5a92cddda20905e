// What a sender did with each packet and what it has been told about it: the observer's side of
// loss recovery. Nothing in here decides whether a packet is lost.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"
#include "core/endpoint.h"

namespace mrc::dst {

class SendHistory {
 public:
  void on_sent(std::uint64_t packet, EvIndex ev, core::TrafficClass traffic_class) {
    if (packet == packets_.size()) packets_.emplace_back();
    Entry& entry = packets_[packet];
    entry.ev = ev;
    entry.lane = lane(ev, traffic_class);
    entry.order = ++order_;
    entry.refused = false;
    ++entry.copies;
  }
  // A NACK named the packet.
  void refuse(std::uint64_t packet) { packets_[packet].refused = true; }

  // The peer said that it has the packet. True when that is news. `none_given_up`: the sender
  // still waited for everything that was not told.
  bool tell(std::uint64_t packet, bool none_given_up) {
    Entry& entry = packets_[packet];
    if (entry.told) return false;
    entry.told = true;
    // Of a packet that was sent again nobody knows which copy arrived.
    if (entry.copies == 1 && none_given_up) {
      if (entry.lane >= newest_told_.size()) newest_told_.resize(entry.lane + 1);
      std::uint64_t& newest = newest_told_[entry.lane];
      newest = newest > entry.order ? newest : entry.order;
    }
    return true;
  }

  std::uint64_t size() const { return packets_.size(); }
  std::uint64_t transmissions() const { return order_; }
  bool told(std::uint64_t packet) const { return packets_[packet].told; }
  bool sent_once(std::uint64_t packet) const { return packets_[packet].copies == 1; }
  EvIndex last_ev(std::uint64_t packet) const { return packets_[packet].ev; }
  // A packet that was sent later on the same path in the same class has arrived while this one was
  // waited for, and nothing else was said about this one. What was given up before may be sent long
  // after, when the window has room, and was not overtaken when it was judged.
  bool overtaken(std::uint64_t packet) const {
    const Entry& entry = packets_[packet];
    return !entry.refused && entry.lane < newest_told_.size() &&
           newest_told_[entry.lane] > entry.order;
  }

 private:
  struct Entry {
    EvIndex ev{};
    std::uint32_t lane = 0;
    std::uint64_t order = 0;
    std::uint32_t copies = 0;
    bool told = false;
    bool refused = false;
  };
  static std::uint32_t lane(EvIndex ev, core::TrafficClass traffic_class) {
    return 4 * static_cast<std::uint32_t>(ev) + static_cast<std::uint32_t>(traffic_class);
  }

  std::vector<Entry> packets_;
  // By lane: order of the newest packet told while none was given up.
  std::vector<std::uint64_t> newest_told_;
  std::uint64_t order_ = 0;
};

}  // namespace mrc::dst
