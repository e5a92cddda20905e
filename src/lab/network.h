// The switches and cables of a lab: real frames through queues with real rates.
//
// A cable is two links. Each has a control and a data queue at its sending end, served in strict
// priority without pre-emption, a rate, a delay, and the rules of fabric::QueuePolicy: ECN marks
// are drawn when a frame leaves, trimming and drops are decided when it comes in. Switches forward
// by uSID and static table. The rules are those of the simulator; here time is that of a clock,
// which the caller passes in, and the caller brings the frames of hosts and takes those for them.
//
// Times are picoseconds of the caller's clock. A network that is looked at late catches up: every
// link keeps its own exact schedule, so rates hold although the process was not running.
//
// Not thread safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/prng.h"
#include "fabric/link_condition.h"
#include "fabric/queue_policy.h"
#include "fabric/routing.h"
#include "lab/forwarding.h"
#include "lab/frame_pool.h"

namespace mrc::lab {

using fabric::LinkId;
using fabric::Picoseconds;

// Takes frames that reached a host. The network keeps nothing of them.
class HostSide {
 public:
  virtual ~HostSide() = default;
  // The frame is the taker's and goes back to the pool. False: the host did not take it, and it is
  // still the network's.
  virtual bool deliver(unsigned plane, unsigned host, FrameId frame) = 0;
};

// Sees every frame that leaves on a link it was told to watch.
class Tap {
 public:
  virtual ~Tap() = default;
  virtual void on_frame(LinkId link, Picoseconds at, std::span<const std::byte> frame) = 0;
};

struct NetworkOptions {
  fabric::QueueShares shares;
  bool trims = true;
  // What a round trip through processes takes beyond serialisation and cables; queues are sized for
  // it.
  Picoseconds host_latency_ps = 1'000'000'000;
  wire::FrameFormat format;
  std::uint64_t seed = 1;
};

struct LinkCounters {
  std::uint64_t frames = 0;  // that left
  std::uint64_t bytes = 0;
  std::uint64_t marks = 0;
  std::uint64_t trims = 0;
  std::uint64_t corrupted = 0;
  std::array<std::uint64_t, kDropCauses> drops{};

  void add(const LinkCounters& other);
  std::uint64_t all_drops() const;
};

class Network {
 public:
  Network(const fabric::Routing& routing, const NetworkOptions& options, FramePool& pool,
          HostSide& hosts);

  // A frame of a host enters its cable; the network owns it from now on. A frame that had to wait
  // for its port in the host may start at `earliest`, before `now`.
  void send(Picoseconds now, Picoseconds earliest, unsigned plane, unsigned host, FrameId frame);
  // A frame of a host that is no frame; it goes back to the pool.
  void refuse(unsigned plane, unsigned host, FrameId frame) {
    drop(topology().host_up(plane, host), DropCause::kMalformed, frame);
  }
  // Bytes that wait in the host's port; more should stay in the host when this is above
  // `read_ahead_bytes()`.
  std::uint32_t waiting_bytes(unsigned plane, unsigned host) const;
  std::uint32_t read_ahead_bytes() const { return read_ahead_bytes_; }

  // Everything that happens up to `now`.
  void run(Picoseconds now);
  // When something happens next; kForever when nothing is under way.
  Picoseconds next_event() const;

  // Faults. A link that goes down loses what is queued and what is under way, see LinkFaults.
  void apply(const fabric::FaultAction& action);
  bool is_down(LinkId link) const { return faults_.is_down(link); }
  bool carrier(unsigned plane, unsigned host) const;
  // How long after a link broke (went down, or began to lose frames) data was still sent its way:
  // the longest such time of all its faults so far. Nothing when no data was.
  std::optional<Picoseconds> offered_after(LinkId link) const;
  const fabric::LinkCondition& condition(LinkId link) const { return faults_.of(link).condition(); }
  // What is wrong with a link, for people; empty when it is healthy.
  std::string condition_in_words(LinkId link) const;

  void watch(LinkId link, Tap* tap);  // null: no longer
  bool watched(LinkId link) const { return links_[index(link)].tap != nullptr; }

  const LinkCounters& counters(LinkId link) const { return counters_[index(link)]; }
  std::uint64_t queued_bytes(LinkId link) const {
    return std::uint64_t{links_[index(link)].data.bytes} + links_[index(link)].control.bytes;
  }
  std::uint64_t hops() const { return hops_; }
  // The host at the end of `link` did not take a frame after all.
  void count_host_drop(LinkId link) { count(link, DropCause::kHost); }
  const fabric::Topology& topology() const { return routing_->topology(); }

 private:
  struct Queue {
    FrameId head = kNoFrame;
    FrameId tail = kNoFrame;
    std::uint32_t bytes = 0;
  };
  struct LinkState {
    Picoseconds busy_until = 0;
    Picoseconds delay_ps = 0;
    std::uint64_t bits_per_second = 0;  // with its faults
    Queue data;
    Queue control;
    fabric::Node to;
    std::uint8_t policy = 0;
    bool faulty = false;  // has or had faults, see `faults_`
    Tap* tap = nullptr;
  };
  // A frame reaches the end of a link.
  struct Arrival {
    Picoseconds at = 0;
    std::uint64_t order = 0;
    LinkId link{};
    FrameId frame{};
    // For a heap with the earliest on top.
    friend bool operator<(const Arrival& a, const Arrival& b) {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };

  void set_up_links();
  void set_up_policies(const NetworkOptions& options);
  void arrive(const Arrival& arrival);
  void enqueue(Picoseconds now, Picoseconds earliest, LinkId link, FrameId frame);
  // Whether the frame may join a queue, after trimming if need be, and which.
  bool admit(LinkId link, FrameId frame, bool& control);
  // Whether a link that goes on carrying frames carries this one, perhaps damaged.
  bool survives(Picoseconds now, LinkId link, FrameId frame);
  void note_offer(Picoseconds now, LinkId link, FrameId frame);
  void advance(Picoseconds now, LinkId link);
  FrameId pop(LinkId link);
  void start(Picoseconds at, LinkId link, FrameId frame);
  void append(Queue& queue, FrameId frame);
  FrameId take_first(Queue& queue);
  void count(LinkId link, DropCause cause);
  void drop(LinkId link, DropCause cause, FrameId frame);
  void flush(LinkId link);
  bool happens(double probability);

  const fabric::Routing* routing_;
  FramePool* pool_;
  HostSide* hosts_;
  TunnelPaths tunnels_;
  wire::FrameFormat format_;
  Prng random_;
  std::array<fabric::QueuePolicy, 3> policies_;  // within the fabric, to a host, of a host
  std::vector<LinkState> links_;
  std::vector<LinkCounters> counters_;
  std::vector<Arrival> arrivals_;  // a heap
  // About links that broke, at any time.
  struct Breach {
    Picoseconds since = 0;
    std::optional<Picoseconds> offered_after;
  };
  fabric::FabricFaults faults_;
  std::map<std::uint32_t, Breach> breaches_;
  std::uint64_t order_ = 0;
  std::uint64_t hops_ = 0;
  std::uint32_t read_ahead_bytes_ = 0;
};

}  // namespace mrc::lab
