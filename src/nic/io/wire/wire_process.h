// The number of this process among those that share the cables of a device (docs/wire.md, section
// 10). An abstract unix address stands for each number: the kernel gives it to one process at a
// time, within a network namespace, and takes it back however the process ends.
#pragma once

#include "nic/io/backend.h"
#include "node/node_state_files.h"
#include "os/descriptor.h"

namespace mrc::nic {

class WireProcess {
 public:
  // Takes the lowest free number; false when there is none.
  bool take(const node::DeviceConfig& config);
  ProcessNumber number() const { return number_; }

 private:
  node::node_files::LifeDescriptor claim_;
  ProcessNumber number_ = 0;
};

}  // namespace mrc::nic
