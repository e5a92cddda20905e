// Where the time of single flows went.
//
// A run is repeated while an explainer follows a few of its flows: every copy of every packet of
// theirs, and what the ports of their hosts do. The time of a flow falls into two parts.
//
//   posted            the last packet leaves for the first time              completed
//     |  each port sends for it, for others, or stands idle   |  the packet that comes last  |
//
// In the first part each of n ports has an n-th of the time. Of an idle one the sender's congestion
// window is the reason, or something else. In the second part everything waits for one packet, the
// last to be placed in the receiver's memory: for its copies that were lost, in queues, on links,
// and for the answer. All parts together are the time of the flow, to the picosecond.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "sim/host.h"
#include "sim/packet_watch.h"
#include "sim/workload.h"

namespace mrc::sim {

class IdealTimes;
struct SimResult;

enum class TimePart : std::uint8_t {
  kSending,       // its packets, for the first time
  kSendingAgain,  // copies of them
  kPortTaken,     // packets of others, and answers
  kWindow,        // a port is free, but not the congestion window
  kHeldUp,        // a port is free, and something else is missing: a path, a receive, its turn
  // From a copy of the last packet to the next one, by what happened to the first:
  kTrimmed,
  kQueueFull,
  kLinkDown,
  kRandomLoss,
  kNoRoute,
  kCorrupted,  // on a link; the receiver threw it away
  kNotTaken,   // it arrived and was thrown away, out of order
  kOvertaken,  // it was slow, and the next one was faster
  // Queues in front of these links, of the copy that was taken:
  kQueueT0T1,
  kQueueT1T2,
  kQueueT2T1,
  kQueueT1T0,
  kQueueT0Host,
  kTravel,  // on links
  kAnswer   // from the last packet to the sender's completion
};
inline constexpr unsigned kTimeParts = 20;
const char* name_of(TimePart part);   // for keys: "window", "queue_t0_t1"
const char* describe(TimePart part);  // for people: "congestion window is closed"

struct Explanation {
  TaskId task = 0;
  double us = 0;
  std::array<double, kTimeParts> part_us{};
  std::uint64_t packets = 0;                     // different ones
  std::uint64_t copies = 0;                      // sent beyond those
  std::array<std::uint64_t, kTimeParts> lost{};  // copies, by the parts from kTrimmed on
  double at(TimePart part) const { return part_us[static_cast<std::size_t>(part)]; }
};

// The `count` flows that lost the most time against a fabric of their own, the worst first.
std::vector<TaskId> slowest_flows(const Workload& workload, const SimResult& result,
                                  const IdealTimes& ideal, unsigned count);

class Explainer final : public PacketWatch {
 public:
  // All of them must outlive this.
  Explainer(const fabric::Topology& topology, const Workload& workload, PacketPool& packets,
            const std::vector<TaskId>& tasks);

  // The senders' side.
  void on_posted(Time now, TaskId task);
  void on_injected(Time now, Time free_at, unsigned plane, PacketId packet);
  // The host has sent what it could at this time.
  void on_pumped(Time now, std::uint32_t host, const Host& state);
  void on_completed(Time now, TaskId task);

  // The receivers' side: a packet arrives, and what it carries may be placed.
  void on_arrived(Time now, PacketId packet);
  void on_placed(Time now, const Placed& placed);

  // PacketWatch
  void on_queued(Time now, PacketId packet) override;
  void on_started(Time at, fabric::LinkId link, PacketId packet) override;
  void on_lost(Time now, PacketId packet, LossCause cause) override;
  void on_exchanged(Time now, PacketId arrival, PacketId queued) override;

  std::vector<Explanation> explain() const;  // in the order of the tasks

 private:
  static constexpr Time kNotYet = -1;
  static constexpr unsigned kQueueKinds = 5;
  struct Copy {
    Time sent = 0;
    Time queued = kNotYet;  // where it stands now
    Time ended = kNotYet;   // lost, or arrived
    TimePart fate = TimePart::kOvertaken;
    bool placed = false;
    std::array<Time, kQueueKinds> waited{};
  };
  struct Port {
    Time busy_until = 0;
    TimePart use = TimePart::kPortTaken;
    TaskId task = 0;
  };
  struct Flow {
    TaskId task = 0;
    std::uint32_t source = 0;
    std::uint64_t bytes = 0;
    std::uint64_t bytes_sent = 0;  // for the first time
    Time posted = kNotYet;
    Time last_left = kNotYet;  // for the first time
    Time completed = kNotYet;
    Time settled = 0;  // the first part of its time is accounted for until then
    bool window_closed = false;
    std::array<Time, kTimeParts> parts{};                // times the number of ports
    std::map<std::uint64_t, std::vector<Copy>> packets;  // by offset
    std::uint64_t last_placed = 0;                       // offset
    bool sends() const { return posted != kNotYet && last_left == kNotYet; }
  };
  struct Place {
    std::uint32_t flow = 0;
    std::uint64_t offset = 0;
    std::uint32_t copy = 0;
  };

  Copy* copy_of(PacketId packet);
  void settle(Flow& flow, Time now);
  void add_tail(const Flow& flow, std::array<Time, kTimeParts>& parts) const;
  static void count_copies(const Flow& flow, Explanation& explanation);

  const fabric::Topology* topology_;
  const Workload* workload_;
  PacketPool* packets_;
  std::vector<Flow> flows_;
  std::unordered_map<TaskId, std::uint32_t> flow_of_task_;
  std::unordered_map<std::uint32_t, std::vector<Port>> hosts_;  // with a flow of ours
  std::unordered_map<std::uint32_t, Place> under_way_;          // by packet
  Copy* arriving_ = nullptr;                                    // its content is placed next
};

}  // namespace mrc::sim
