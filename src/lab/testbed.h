// What a lab is made of, as its process sees it: hosts, switches and cables of a topology that
// carry real frames and can be broken. Cluster is the one whose switches are ours, KernelTestbed
// the one whose switches are the kernel's.
//
// Not thread safe: one thread calls step(), sleeps until next_time() or until descriptor() is
// readable, and executes commands in between.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fabric/fault_plan.h"
#include "fabric/link_condition.h"
#include "fabric/routing.h"
#include "fabric/topology.h"
#include "lab/capture.h"
#include "lab/fault_book.h"
#include "lab/netns_plan.h"
#include "lab/network.h"

namespace mrc::lab {

enum class CaptureId : std::uint32_t {};

class Testbed {
 public:
  // Throws InputError for bad input.
  explicit Testbed(const fabric::TopologySpec& topology);
  virtual ~Testbed() = default;
  Testbed(const Testbed&) = delete;
  Testbed& operator=(const Testbed&) = delete;

  // Picoseconds since it was made.
  Picoseconds now() const;
  // Everything that is due. Call again at once when it returns true.
  virtual bool step() = 0;
  // When to call it next at the latest; kForever when nothing is under way.
  virtual Picoseconds next_time() const = 0;
  virtual int descriptor() const = 0;

  // Commands. They throw InputError for names that do not exist and for what cannot be done.
  void add_fault(const std::string& text);
  // Ends all faults on a link, a switch or a host port, all of them for "all". Returns how many.
  unsigned heal(const std::string& target);
  virtual CaptureId start_capture(const std::string& target, const CaptureOptions& options) = 0;
  // Returns the frames it has. InputError when some of them could not be written.
  virtual std::uint64_t stop_capture(CaptureId id) = 0;

  // What it looks like now. Counters are as of the last refresh().
  virtual void refresh() {}
  virtual LinkCounters counters(LinkId link) const = 0;
  virtual std::string condition(LinkId link) const = 0;  // in words, empty when it is healthy
  // What its faults come to, and the bytes that wait at its sending end, where that is known.
  virtual fabric::LinkCondition faults_of(LinkId link) const = 0;
  virtual std::uint64_t queued_bytes(LinkId) const { return 0; }
  // See Network::offered_after(); nothing where it is not known.
  virtual std::optional<Picoseconds> offered_after(LinkId) const { return std::nullopt; }
  virtual bool carrier(unsigned plane, unsigned host) const = 0;
  virtual unsigned connections(unsigned plane, unsigned host) const = 0;
  // The namespace programs of a host run in; empty where they run in that of the caller.
  virtual std::string host_space(unsigned) const { return {}; }

  const fabric::Topology& topology() const { return topology_; }
  const fabric::Routing& routing() const { return routing_; }
  const FaultBook& faults() const { return faults_; }

 protected:
  std::vector<LinkId> resolve(const std::string& target) const;
  FaultBook& fault_book() { return faults_; }

 private:
  // Throws InputError for a fault that this testbed cannot produce.
  virtual void check(const fabric::Fault& fault) const = 0;
  virtual void apply(const std::vector<fabric::FaultAction>& actions) = 0;

  fabric::Topology topology_;
  fabric::Routing routing_;
  FaultBook faults_;
  std::int64_t start_ns_ = 0;
};

}  // namespace mrc::lab
