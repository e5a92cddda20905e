// An in-memory fabric in virtual time: links with rate and delay, switches that forward by the uSID
// carrier in the frame, mark at long queues and trim at full ones, and cables that can be cut.
//
// A queue is not stored: a FIFO link is described by the time at which it will have sent what it
// has taken. Answers and trimmed packets overtake data, as in a switch with two classes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <vector>

#include "base/prng.h"
#include "base/types.h"
#include "demo/frame_pool.h"
#include "demo/topology.h"
#include "wire/frame.h"
#include "wire/ip_header.h"

namespace mrc::demo {

enum class FaultId : std::uint32_t {};
inline constexpr FaultId kNoFault{0xFFFF'FFFF};

// What a cut cost, as the network saw it. Times are kNever when it did not happen.
struct CutTrace {
  std::uint64_t data_lost = 0;
  std::uint64_t flows_hit = 0;          // that lost data
  std::uint64_t most_lost_by_flow = 0;  // data packets
  std::uint64_t control_lost = 0;
  std::uint64_t probes_lost = 0;
  TimeNs last_data_sent_at = kNever;  // when the latest of the lost data packets left its host
  DurationNs longest_use_ns = 0;      // the most time between the first and last packet a flow lost
  TimeNs first_data_after_at = kNever;  // data crossed a repaired cable again
};

struct NetworkCounters {
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;
  std::uint64_t marked = 0;
  std::uint64_t trimmed = 0;
  std::uint64_t overflowed = 0;  // neither room nor leave to trim
  std::uint64_t unroutable = 0;  // a carrier that led nowhere; stays 0
};

struct Delivery {
  unsigned host = 0;
  PortId port{1};
  FrameId frame{};
};

class VirtualNetwork {
 public:
  VirtualNetwork(const Topology& topology, unsigned faults, std::uint64_t seed);

  FramePool& frames() { return frames_; }
  const wire::FrameFormat& format() const { return format_; }

  // Puts a frame on a host's cable and returns when the port is free again.
  TimeNs send(TimeNs now, unsigned host, PortId port, FrameId frame);

  TimeNs next_time() const { return arrivals_.empty() ? kNever : arrivals_.top().at; }
  // Handles the next arrival; true when a frame has reached a host, which must release it.
  bool step(Delivery& out);

  // Cuts are silent: whatever is on the cable or enters it is gone. One cable may be cut twice and
  // works again when both are repaired.
  void cut(TimeNs now, FaultId fault, const std::vector<LinkId>& links);
  void repair(FaultId fault, const std::vector<LinkId>& links);
  bool is_cut(LinkId link) const { return at(link).cuts > 0; }
  // Whether data of this flow gets through.
  bool path_works(const Flow& flow, const Path& path) const;

  const CutTrace& trace(FaultId fault) const {
    return cuts_[static_cast<std::size_t>(fault)].trace;
  }
  const NetworkCounters& counters() const { return counters_; }

 private:
  enum class NodeKind : std::uint8_t { kHost, kLeaf, kSpine };
  struct Node {
    NodeKind kind = NodeKind::kHost;
    PortId plane{1};
    unsigned index = 0;
  };
  struct Link {
    Node to;
    DurationNs delay_ns = 0;
    bool marks = true;            // not on the last hop: congestion there is not the path's fault
    std::int64_t room_bytes = 0;  // data that fits the queue before it trims
    TimeNs data_free_at = 0;
    TimeNs control_free_at = 0;
    unsigned cuts = 0;
    FaultId cut_by = kNoFault;       // the latest
    FaultId watched_for = kNoFault;  // repaired; the first data packet is worth a note
  };
  struct Cut {
    TimeNs at = 0;
    CutTrace trace;
    struct Loss {
      TimeNs first_sent_at = 0;
      std::uint64_t packets = 0;
    };
    std::map<Flow, Loss> losses;  // of data
  };
  struct Flight {
    TimeNs at = 0;
    std::uint64_t order = 0;  // ties are resolved in the order of sending
    LinkId link{};
    FrameId frame{};
    friend bool operator>(const Flight& a, const Flight& b) {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };

  Link& at(LinkId link) { return links_[static_cast<std::size_t>(link)]; }
  const Link& at(LinkId link) const { return links_[static_cast<std::size_t>(link)]; }
  void lay_cables();
  void enter(TimeNs now, LinkId id, FrameId frame);
  bool trim(const Link& link, Frame& frame);
  void mark(Frame& frame);
  void lose(const Link& link, FrameId frame);
  void note_lost_data(Cut& cut, const Frame& frame);
  bool forward(TimeNs now, const Node& node, FrameId frame);
  bool route(const Node& node, const wire::IpAddress& carrier, LinkId& next) const;

  const Topology& topology_;
  wire::FrameFormat format_;
  Prng prng_;
  FramePool frames_;
  std::vector<Link> links_;
  std::vector<Cut> cuts_;
  std::priority_queue<Flight, std::vector<Flight>, std::greater<>> arrivals_;
  std::uint64_t next_order_ = 0;
  NetworkCounters counters_;
};

}  // namespace mrc::demo
