// Virtual time: a heap of things that will happen, in the total order (time, time at which it was
// first due, order of scheduling): what was put off keeps its place in the queue.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "base/types.h"

namespace mrc::dst {

enum class Happening : std::uint8_t {
  kLastHop,      // subject: flight; it reaches the switch next to its destination
  kDeliver,      // subject: flight; it reaches its destination
  kHostTimer,    // subject: host, detail: generation; its engine asked for on_timer
  kPortFree,     // subject: host; a port finished sending
  kPoll,         // subject: host; a slow program looks at its completions
  kPost,         // subject: connection, detail: side; the program may post more
  kPathFault,    // subject: kind of fault; the next one strikes
  kPathTurn,     // subject: episode; it begins or ends
  kHostFault,    // subject: kind of fault
  kHostRestart,  // subject: host
  kApiFault,     // subject: kind of fault
  kAdversary,    // subject: kind of fault
};

struct Scheduled {
  TimeNs time = 0;
  TimeNs due = 0;  // earlier than `time` if it was put off
  std::uint64_t order = 0;
  Happening what = Happening::kDeliver;
  std::uint32_t subject = 0;
  std::uint32_t detail = 0;
};

class EventQueue {
 public:
  void push(TimeNs time, Happening what, std::uint32_t subject, std::uint32_t detail = 0) {
    push({time, time, next_order_++, what, subject, detail});
  }
  void put_off(Scheduled event, TimeNs until) {
    event.time = until;
    push(event);
  }
  Scheduled pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Scheduled first = heap_.back();
    heap_.pop_back();
    return first;
  }
  bool empty() const { return heap_.empty(); }
  TimeNs next_time() const { return heap_.empty() ? kNever : heap_.front().time; }

 private:
  static bool later(const Scheduled& a, const Scheduled& b) {
    return std::tie(a.time, a.due, a.order) > std::tie(b.time, b.due, b.order);
  }
  void push(const Scheduled& event) {
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  std::vector<Scheduled> heap_;
  std::uint64_t next_order_ = 0;
};

}  // namespace mrc::dst
