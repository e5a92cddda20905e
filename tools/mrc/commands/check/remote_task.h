// What a host, or two, are asked to do over ssh.
#pragma once

#include <poll.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "commands/check/fleet.h"
#include "launch/child_process.h"

namespace mrc::tool::check {

// A program over ssh, with the time it has.
class RemoteProcess {
 public:
  RemoteProcess(const FleetOptions& options, const Host& host,
                const std::vector<std::string>& arguments, double patience_s);

  void look();
  bool ended() const { return child_.ended(); }
  const std::string& output() const { return child_.output(); }
  void kill() { child_.kill(); }
  void add_descriptors(std::vector<pollfd>& list) const;
  // Why it ended without an answer.
  doctor::Finding explain() const;

 private:
  using Clock = std::chrono::steady_clock;

  std::string address_;
  std::string ssh_;
  bool no_file_;
  double patience_s_;
  Clock::time_point deadline_;
  bool late_ = false;
  ChildProcess child_;
};

class Task {
 public:
  virtual ~Task() = default;
  virtual std::vector<std::size_t> hosts() const = 0;  // one task at a time for each
  virtual void start() = 0;                            // throws Failure
  virtual bool step() = 0;                             // true: done
  virtual void add_descriptors(std::vector<pollfd>& list) const = 0;
  virtual void fail(const std::string& why) = 0;  // it could not be started
};

std::unique_ptr<Task> make_host_task(const FleetOptions& options, std::size_t host,
                                     FleetReport& report);
std::unique_ptr<Task> make_pair_task(const FleetOptions& options, std::size_t pair,
                                     FleetReport& report);

}  // namespace mrc::tool::check
