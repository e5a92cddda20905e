// A virtual cluster: the switches and cables of a topology, driven by the machine's clock, with the
// sockets its hosts connect to. Hosts are whatever processes connect; the cluster starts none.
//
// Not thread safe: one thread calls step(), sleeps until next_time() or until descriptor() is
// readable, and executes commands in between.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fabric/fault_plan.h"
#include "fabric/routing.h"
#include "fabric/topology.h"
#include "lab/cables.h"
#include "lab/capture.h"
#include "lab/fault_book.h"
#include "lab/frame_pool.h"
#include "lab/network.h"

namespace mrc::lab {

struct ClusterOptions {
  fabric::TopologySpec topology;  // with the rates the lab is to have
  NetworkOptions network;
  std::string socket_directory;         // exists
  std::vector<std::string> fault_plan;  // text; times count from the start
};

// The same fabric with ports of hosts at `bits_per_second`, all other links in proportion.
fabric::TopologySpec scale_rates(fabric::TopologySpec spec, std::uint64_t bits_per_second);

enum class CaptureId : std::uint32_t {};

class Cluster {
 public:
  // Throws InputError for bad input, std::system_error when the system refuses.
  explicit Cluster(const ClusterOptions& options);

  // Picoseconds since the cluster was made.
  Picoseconds now() const;
  // Everything that is due. Call again at once when it returns true.
  bool step();
  // When to call it next at the latest; kForever when nothing is under way.
  Picoseconds next_time() const;
  int descriptor() const { return cables_.descriptor(); }

  // Commands. They throw InputError for names that do not exist.
  void add_fault(const std::string& text);
  // Ends all faults on a link, a switch or a host port, all of them for "all". Returns how many.
  unsigned heal(const std::string& target);
  CaptureId start_capture(const std::string& target, const CaptureOptions& options);
  std::uint64_t stop_capture(CaptureId id);  // returns the frames it has

  const fabric::Topology& topology() const { return topology_; }
  const Network& network() const { return network_; }
  const Cables& cables() const { return cables_; }
  const FaultBook& faults() const { return faults_; }

 private:
  std::vector<LinkId> resolve(const std::string& target) const;
  void apply(const fabric::FaultAction& action);
  void flush_captures(Picoseconds now);

  fabric::Topology topology_;
  fabric::Routing routing_;
  FramePool pool_;
  Cables cables_;
  Network network_;
  FaultBook faults_;
  std::map<CaptureId, std::unique_ptr<Capture>> captures_;
  std::uint32_t next_capture_ = 0;
  Picoseconds captures_flushed_ps_ = 0;
  std::int64_t start_ns_ = 0;
};

}  // namespace mrc::lab
