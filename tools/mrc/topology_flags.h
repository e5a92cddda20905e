// The flags that describe a fabric, the same for all sub-commands.
#pragma once

#include <string>

#include "fabric/topology.h"
#include "fabric/topology_options.h"

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace mrc::tool {

class TopologyFlags {
 public:
  // Adds the flags to `app`; their values live in this object, which may serve several apps.
  void declare(CLI::App& app);

  // What was described. Throws InputError when it makes no fabric.
  fabric::TopologySpec spec() const;
  // The same, starting from `unless_named` where no preset or file is given.
  fabric::TopologySpec spec(const fabric::TopologySpec& unless_named) const;

 private:
  std::string source_;
  fabric::TopologyOptions options_;
};

}  // namespace mrc::tool
