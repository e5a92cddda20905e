// The ranks of a job in a lab: one process in each of some hosts, started as `mrc lab exec` starts
// them, and what they say.
//
// They end with this process, however it ends, and with their lab. Not thread safe.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "lab/directory.h"
#include "os/descriptor.h"

namespace mrc::tool {

struct RankGroupOptions {
  std::vector<unsigned> hosts;       // by rank
  std::vector<std::string> command;  // --rank, --ranks, --root are appended
  bool shows_output = false;         // what ranks write to stdout goes to ours, not to poll()
};

class RankGroup {
 public:
  using OnLine = std::function<void(unsigned rank, const std::string& line)>;

  // Throws Failure when the system refuses.
  RankGroup(const lab::Directory& directory, const RankGroupOptions& options);
  // Kills what still runs.
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  // Waits up to `timeout_ms` for something to happen and hands over whole lines of stdout.
  void poll(int timeout_ms, const OnLine& on_line);
  bool running() const;
  void signal(int number);

  // Of the rank that ended first with another result than 0, or 0 while there is none.
  int result() const { return result_; }
  // What that rank wrote to stderr, its name before it.
  std::string complaint() const;

 private:
  struct Rank {
    pid_t process = -1;
    bool ended = false;
    os::Descriptor life;  // a pidfd
    os::Descriptor output;
    os::Descriptor errors;
    std::string line;   // of stdout, not yet whole
    std::string words;  // all of stderr, up to a limit
  };

  void start(const lab::Directory& directory, unsigned rank, const RankGroupOptions& options,
             const std::vector<std::string>& words);
  static void read_lines(Rank& rank, unsigned number, const OnLine& on_line);
  static void read_errors(Rank& rank);
  void take_end(unsigned number, const OnLine& on_line);

  std::vector<Rank> ranks_;
  int result_ = 0;
  unsigned first_to_fail_ = 0;
};

// This program, for a command that starts itself again.
std::string own_program();

}  // namespace mrc::tool
