// A testbed whose switches are ours: the network of a topology, driven by the machine's clock, with
// the cables its hosts are connected to. Hosts are whatever processes connect; the cluster starts
// none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fabric/topology.h"
#include "lab/capture.h"
#include "lab/frame_pool.h"
#include "lab/host_ports.h"
#include "lab/network.h"
#include "lab/testbed.h"

namespace mrc::lab {

struct ClusterOptions {
  fabric::TopologySpec topology;  // with the rates the lab is to have
  NetworkOptions network;
  SwitchKind switches = SwitchKind::kProcess;
  std::string namespace_prefix;         // where there are namespaces; filled in by the daemon
  std::string socket_directory;         // exists; filled in by the daemon
  std::vector<std::string> fault_plan;  // text; times count from the start
};

// The same fabric with ports of hosts at `bits_per_second`, all other links in proportion.
fabric::TopologySpec scale_rates(fabric::TopologySpec spec, std::uint64_t bits_per_second);

class Cluster final : public Testbed {
 public:
  // Throws InputError for bad input, std::system_error when the system refuses.
  explicit Cluster(const ClusterOptions& options);

  bool step() override;
  Picoseconds next_time() const override;
  int descriptor() const override { return ports_->descriptor(); }
  CaptureId start_capture(const std::string& target, const CaptureOptions& options) override;
  std::uint64_t stop_capture(CaptureId id) override;

  LinkCounters counters(LinkId link) const override { return network_.counters(link); }
  std::string condition(LinkId link) const override { return network_.condition_in_words(link); }
  fabric::LinkCondition faults_of(LinkId link) const override { return network_.condition(link); }
  std::uint64_t queued_bytes(LinkId link) const override { return network_.queued_bytes(link); }
  std::optional<Picoseconds> offered_after(LinkId link) const override {
    return network_.offered_after(link);
  }
  bool carrier(unsigned plane, unsigned host) const override {
    return network_.carrier(plane, host);
  }
  unsigned connections(unsigned plane, unsigned host) const override {
    return ports_->connections(plane, host);
  }
  std::string host_space(unsigned host) const override {
    return host_spaces_.empty() ? std::string() : host_spaces_[host];
  }
  const Network& network() const { return network_; }

 private:
  void check(const fabric::Fault&) const override {}
  void apply(const std::vector<fabric::FaultAction>& actions) override;
  void flush_captures(Picoseconds now);

  FramePool pool_;
  std::unique_ptr<HostPorts> ports_;
  Network network_;
  std::vector<std::string> host_spaces_;  // empty where hosts have no namespaces
  std::map<CaptureId, std::unique_ptr<Capture>> captures_;
  std::uint32_t next_capture_ = 0;
  Picoseconds captures_flushed_ps_ = 0;
};

}  // namespace mrc::lab
