// The processes that probe, one for each host, and the lines they write.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "commands/map/results.h"
#include "os/descriptor.h"

namespace mrc::tool::map {

class Agents {
 public:
  Agents() = default;
  // Ends those that still run.
  ~Agents();
  Agents(const Agents&) = delete;
  Agents& operator=(const Agents&) = delete;

  // Starts a program that writes results, and dies with this process. Throws std::runtime_error.
  void start(unsigned host, const std::vector<std::string>& words);
  std::size_t count() const { return agents_.size(); }

  // One line of every agent, in the order of start(). Nothing when a signal came. Throws
  // std::runtime_error with an agent's own words when it ends without a line.
  std::optional<std::vector<fabric::HostResults>> next();

 private:
  struct Agent {
    unsigned host = 0;
    pid_t process = 0;
    os::Descriptor output;
    std::string buffer;
    std::string complaint;  // what it wrote that is no result
  };

  static std::optional<fabric::HostResults> take_line(Agent& agent);
  static bool read_more(Agent& agent);
  [[noreturn]] static void ended_early(const Agent& agent);

  std::vector<Agent> agents_;
};

}  // namespace mrc::tool::map
