// A testbed whose switches are the kernel's: every switch is a network namespace that forwards SRv6
// by its static table and nothing else. Our process carries no frame; it breaks cables, counts and
// captures.
//
// A cut cable is an interface taken down at the cable's home end, which the other end sees as a
// lost carrier. Loss, and faults of one direction, are a filter there; rates are token buckets.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lab/cable_order.h"
#include "lab/cluster.h"
#include "lab/kernel_capture.h"
#include "lab/netns_world.h"
#include "lab/testbed.h"
#include "os/descriptor.h"

namespace mrc::lab {

class KernelTestbed final : public Testbed {
 public:
  // Throws InputError for bad input, std::runtime_error when the system refuses.
  explicit KernelTestbed(const ClusterOptions& options);

  bool step() override;
  Picoseconds next_time() const override { return faults().next_time(); }
  int descriptor() const override { return epoll_.get(); }
  CaptureId start_capture(const std::string& target, const CaptureOptions& options) override;
  std::uint64_t stop_capture(CaptureId id) override;

  void refresh() override;
  LinkCounters counters(LinkId link) const override;
  std::string condition(LinkId link) const override;
  fabric::LinkCondition faults_of(LinkId link) const override {
    return faults_now_.of(link).condition();
  }
  bool carrier(unsigned plane, unsigned host) const override;
  unsigned connections(unsigned, unsigned) const override { return 0; }  // the kernel's business
  std::string host_space(unsigned host) const override { return world_.plan().host_space(host); }

 private:
  struct CableState {
    CableOrder done;
    std::string trouble;  // why the system did not do what was asked
  };

  void check(const fabric::Fault& fault) const override;
  void apply(const std::vector<fabric::FaultAction>& actions) override;
  // Makes a cable what the faults want it to be; `home` is the direction that leaves its home end.
  void reconcile(LinkId home);
  void set_cable(LinkId home, bool down);
  // `done` follows what the kernel was made to do.
  void set_direction(LinkId link, const DirectionOrder& order, DirectionOrder& done);
  LinkId home_of(LinkId link) const;
  bool can_filter() const;

  NetnsWorld world_;
  os::Descriptor epoll_;
  bool filters_ = false;
  fabric::FabricFaults faults_now_;
  std::map<LinkId, CableState> cables_;
  std::map<std::string, std::map<std::string, InterfaceCounters>> counters_;  // space, interface
  std::map<CaptureId, std::unique_ptr<KernelCapture>> captures_;
  std::uint32_t next_capture_ = 0;
};

}  // namespace mrc::lab
