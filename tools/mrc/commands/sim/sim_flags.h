// The flags that describe a simulation, for every command that runs one.
#pragma once

#include <string>
#include <vector>

#include "commands/sim/run_options.h"

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
class Option;
}  // namespace CLI

namespace mrc::tool::simulator {

class SimFlags {
 public:
  // Adds the flags to `app`; their values live in this object.
  void declare(CLI::App& app);
  // What was described. Throws InputError.
  RunOptions read() const;

 private:
  CLI::Option* declare_setting(CLI::App& app, const Setting& setting);
  template <typename Keys>
  void declare_topology(CLI::App& app, const Keys& keys, const char* type);
  std::string command() const;

  struct Given {
    const Setting* setting = nullptr;
    std::string text;
  };
  struct GivenTopology {
    std::string name;
    std::string text;
  };

  // In the order of the command line.
  std::vector<Given> given_;
  std::vector<GivenTopology> topology_given_;
  std::vector<std::string> config_files_;
};

}  // namespace mrc::tool::simulator
