// The namespaces and cables of a lab, made and removed. See netns_plan.h for what there is.
#pragma once

#include <map>
#include <string>

#include "lab/net_namespace.h"
#include "lab/netns_plan.h"

namespace mrc::lab {

class NetnsWorld {
 public:
  // Makes everything, with nothing broken and all rates set. Throws InputError for fabrics that
  // cannot be built this way, std::runtime_error with one line when the system refuses; nothing is
  // left then.
  NetnsWorld(const fabric::Routing& routing, const std::string& prefix, SwitchKind kind);
  ~NetnsWorld();
  NetnsWorld(const NetnsWorld&) = delete;
  NetnsWorld& operator=(const NetnsWorld&) = delete;

  const NetnsPlan& plan() const { return plan_; }
  const NetNamespace& space(const std::string& name);
  // Lines for `ip` and `tc` in a namespace. Throw std::runtime_error.
  static void ip(const std::string& name_space, const std::string& batch);
  static void tc(const std::string& name_space, const std::string& batch);

 private:
  void build(const fabric::Routing& routing);
  void set_rates(const fabric::Topology& topology) const;

  std::string prefix_;
  SwitchKind kind_;
  NetnsPlan plan_;
  std::map<std::string, NetNamespace> spaces_;
};

}  // namespace mrc::lab
