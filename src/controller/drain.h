// Takes parts of a fabric out of use on all its nodes, and gives them back.
//
// Which parts are drained is in the state of each node's device (node_state.h) and nowhere else: it
// outlives every process, and whoever asks reads it there. A part is drained on all nodes or, when
// that fails, on none that it was not drained on before. Of one fabric one of these is at work at a
// time; the caller sees to that.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "fabric/drain.h"
#include "fabric/routing.h"
#include "node/config.h"
#include "node/node_state.h"

namespace mrc::controller {

struct DrainNode {
  unsigned host = 0;
  std::unique_ptr<node::NodeState> state;
};
// The node of a device. Throws fabric::InputError when the device has not one port for each plane,
// or does not choose the paths of its packets, CtlError when its state cannot be opened.
DrainNode open_drain_node(const fabric::Topology& topology, unsigned host,
                          const node::DeviceConfig& device);

// The names of the parts that a device stays off, by the state in its directory. Throws CtlError.
std::vector<std::string> drained_parts(const std::string& directory);

// The ways of `host` that cross the part.
std::vector<node::PathExclusion> exclusions_of(const fabric::Routing& routing,
                                               const fabric::DrainTarget& target, unsigned host);

class FabricDrains {
 public:
  FabricDrains(const fabric::Routing& routing, std::vector<DrainNode> nodes);

  std::size_t node_count() const { return nodes_.size(); }
  struct Entry {
    std::string name;
    node::DrainedBy by = node::DrainedBy::kCommand;
    unsigned nodes = 0;  // that have it
  };
  // By name.
  std::vector<Entry> list() const;

  // Two hosts that draining the part would leave without a path, by what is drained and which ports
  // are disabled now, and without the parts in `also`.
  std::optional<fabric::HostPair> would_cut_off(const fabric::DrainTarget& target,
                                                const std::set<std::string>& also = {}) const;

  // Throws CtlError when a node does not take it; it is then as it was on all of them.
  void drain(const fabric::DrainTarget& target, node::DrainedBy by);
  // Undoes the last drain().
  void take_back();
  // On all nodes that have it. Throws CtlError, with those before the node that refused undrained.
  void undrain(const std::string& name);

  // After one of these: processes that do not follow yet, and one that cannot go on.
  struct Process {
    unsigned host = 0;
    std::uint64_t pid = 0;
  };
  struct Stranded {
    Process process;
    std::uint64_t queue_pairs = 0;  // that have no path any more and had one before
  };
  struct Progress {
    std::vector<Process> behind;
    std::optional<Stranded> stranded;
  };
  Progress progress() const;

 private:
  struct Node {
    DrainNode it;
    std::uint64_t version = 0;  // that processes are to follow
    bool changed = false;       // by the last drain()
    std::vector<node::NodeFollower> before;
  };

  static void give_back(Node& node, const std::string& name);
  void note_followers();
  std::vector<fabric::DrainTarget> out_of_use(const std::set<std::string>& also) const;

  const fabric::Routing* routing_;
  std::vector<Node> nodes_;
  std::string last_;  // drained
};

}  // namespace mrc::controller
