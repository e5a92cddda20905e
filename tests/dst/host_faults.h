// What befalls hosts: they stop for a while, crash, lose track of time, run out of buffers.
#pragma once

#include "base/types.h"
#include "dst/random.h"
#include "dst/stage.h"

namespace mrc::dst {

struct World;

class HostFaults {
 public:
  explicit HostFaults(World& world);

  void start();
  void on_fault(Fault kind);
  void on_restart(unsigned host);
  void heal();

  // Asked by the driver of an engine at the moment in question.
  bool out_of_buffers();
  bool early_timer();
  DurationNs timer_delay();

 private:
  void schedule_next(Fault kind);
  void crash(unsigned host);
  bool strikes(Fault fault);

  World& world_;
  Random random_;
};

}  // namespace mrc::dst
