// The loop from what `mrc map` finds to what is drained: denies and allows parts of a fabric by
// itself, and logs why.
//
// What is drained is in the state of the nodes and read from there at every look, so it does not
// matter who else drains and how often this is started anew. Parts that a command drained are left
// to commands.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "commands/drain/fabric_nodes.h"
#include "controller/drain.h"
#include "controller/healing.h"
#include "fabric/routing.h"

namespace mrc::tool::ctld {

class Healer {
 public:
  struct Options {
    controller::HealingPolicy policy;
    bool dry_run = false;  // changes nothing
  };

  // All objects stay with this one.
  Healer(drain::FabricNodes& nodes, const fabric::Routing& routing,
         controller::FabricDrains& drains, const Options& options)
      : nodes_(&nodes),
        routing_(&routing),
        drains_(&drains),
        dry_run_(options.dry_run),
        limit_(options.policy.limit),
        healing_(options.policy) {}

  // Throws CtlError when a node refuses to be changed.
  void take(const controller::Look& look);

 private:
  void do_as_proposed(const controller::Proposal& proposal);
  void deny(const controller::Proposal& proposal);
  void allow(const controller::Proposal& proposal);
  // Drains the part; why not, or nothing.
  std::string try_to_drain(const std::string& part);

  drain::FabricNodes* nodes_;
  const fabric::Routing* routing_;
  controller::FabricDrains* drains_;
  bool dry_run_;
  unsigned limit_;
  controller::Healing healing_;
  std::set<std::string> ours_;  // out of use by our decision; in a dry run they would be
};

}  // namespace mrc::tool::ctld
