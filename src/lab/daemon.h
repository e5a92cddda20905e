// The process behind a lab: a cluster, its control socket, and the books about what runs in it.
//
// Verbs of the control socket (words of a request, see control.h):
//   fault TEXT                 a fault from now on, in the words of a fault plan
//   heal TARGET                ends the faults on a link, switch or host port, or on "all"
//   capture TARGET FILE SNAP   until the connection closes
//   frames                     how many frames the connection's capture has
//   hold HOST PID COMMAND      a program runs in this host until the connection closes; the answer
//   is
//                              the network namespace it runs in, empty when there is none
//   status                     lines of words separated by tabs
//   links FROM                 what each link carries, from this one on, in a few kB; see links()
//   down                       the end
//
// run() belongs to one thread; stop() may be called from any thread and from a signal handler.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lab/cluster.h"
#include "lab/control.h"
#include "lab/directory.h"
#include "lab/host_config.h"
#include "os/descriptor.h"

namespace mrc::lab {

class Daemon {
 public:
  // `directory` is locked and set up; what `options` says is filled in here, is. Throws InputError
  // for bad input, std::runtime_error when the system refuses.
  Daemon(const Directory& directory, ClusterOptions options);

  void run();
  void stop();

 private:
  struct Program {
    unsigned host = 0;
    std::string pid;
    std::string command;
  };

  Reply answer(ClientId client, const std::vector<std::string>& words);
  Reply execute(ClientId client, const std::vector<std::string>& words);
  Reply hold(ClientId client, const std::vector<std::string>& words);
  Reply capture(ClientId client, const std::vector<std::string>& words);
  void forget(ClientId client);
  std::string status();
  std::string status_of_network() const;
  // Lines of words separated by tabs: `time` with picoseconds; `fabric` with everything that makes
  // a topology; `fault` as in the status; `link` with number, bytes, bytes that wait, and where it
  // is not healthy rate share, loss, damage, black hole and down; `sum` with marks, trims, damaged
  // and drops by cause of all links; `count` with number, marks, trims and drops of a link that has
  // any; `next` with the link to ask for next, none after the last.
  // Links that never carried anything and are healthy are left out.
  std::string links(unsigned from);
  void sleep(bool again);

  const Directory* directory_;
  os::Descriptor wake_;
  LabSwitches switches_;
  std::unique_ptr<Testbed> testbed_;
  ControlServer control_;
  std::map<ClientId, Program> programs_;
  std::map<ClientId, CaptureId> captures_;
  bool ended_ = false;
};

}  // namespace mrc::lab
