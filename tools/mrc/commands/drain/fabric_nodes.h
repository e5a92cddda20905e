// The nodes of a fabric that a command can reach: all hosts of a lab, or this host alone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/drain.h"
#include "fabric/topology.h"
#include "instance_lock.h"
#include "lab/control.h"
#include "lab/directory.h"

namespace mrc::tool::drain {

struct FabricNodes {
  fabric::TopologySpec spec;
  std::vector<controller::DrainNode> nodes;
  // Of a lab, whose links can be asked what they carry.
  std::unique_ptr<lab::ControlClient> lab;
  std::string folder;  // of all of them
};

// Throw fabric::InputError when these are no nodes on which a part can be drained;
// std::runtime_error when there is no such lab.
FabricNodes nodes_of_lab(const lab::Directory& directory);
FabricNodes own_node(const fabric::TopologySpec& spec, unsigned host, const std::string& device);

// To be held by whoever changes what is drained. Throws fabric::InputError when somebody else does.
InstanceLock lock_for_change(const FabricNodes& nodes);

}  // namespace mrc::tool::drain
