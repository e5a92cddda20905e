// What sysfs would say about our devices if the kernel knew them: a folder of the same shape as
// /sys/class, for src/api/sysfs, which shows it to programs under `mrc run`.
//
//   class/infiniband/mrc0/device -> the PCI device of the first port's interface, or the interface
//   class/infiniband/mrc0/node_guid, node_type
//   class/infiniband/mrc0/ports/1/link_layer, gids/N, gid_attrs/types/N, gid_attrs/ndevs/N
//   class/infiniband/mlx5_0 -> each device of a real card
#pragma once

#include <string>

namespace mrc::tool {

// The folder, in the state directory of the first device: made unless one with the same contents is
// there. Empty: `why` says so; there are no devices, or no place to write.
std::string make_sysfs_tree(std::string& why);

}  // namespace mrc::tool
