// Where a lab keeps its things, one directory each:
//
//   BASE/NAME/lock      flock'ed by the lab's daemon as long as it lives; holds its process id
//   BASE/NAME/control   socket for commands
//   BASE/NAME/p/H.P     the cable of host H in plane P
//   BASE/NAME/h/H/      host H: mrc.toml and the state of its device
//
// BASE is $XDG_RUNTIME_DIR/mrc-lab, or /tmp/mrc-lab-UID where there is none.
//
// Life cycle. A lab is up while somebody holds the lock; the kernel lets go of it however that
// process ends, so a directory whose lock is free is a leftover. Whoever has the lock may remove
// the directory, and does: the daemon when it ends in order, `down` always, and `up` before it
// starts anew.
#pragma once

#include <string>
#include <vector>

#include "os/descriptor.h"

namespace mrc::lab {

class Directory {
 public:
  // Throws InputError for a name that is none: 1 to 32 letters, digits, '-' and '_'.
  Directory(std::string base, std::string name);
  static std::string default_base();

  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }
  std::string control_path() const { return path_ + "/control"; }
  std::string ports_path() const { return path_ + "/p"; }
  std::string host_path(unsigned host) const { return path_ + "/h/" + std::to_string(host); }
  std::string config_path(unsigned host) const { return host_path(host) + "/mrc.toml"; }

  // Of the network namespaces of this lab, and of no other on this machine.
  std::string namespace_prefix() const;

  // Throws std::runtime_error, one line for a person, where the system does not let us look.
  enum class State { kAbsent, kLeftover, kUp };
  State state() const;
  // Of the process that holds the lock; 0 when unknown.
  int holder() const;

  // Makes the directory and takes the lock; false when somebody has it. Throws std::system_error
  // when the system refuses, InputError when BASE belongs to somebody else.
  bool lock();
  bool locked() const { return lock_.valid(); }
  // Writes our process id into the lock, removes what a lab that was killed has left, and makes the
  // folders of sockets and hosts.
  void set_up(unsigned hosts);
  // Removes everything, namespaces too; only with the lock. The lock is free then.
  void remove();
  // Closes our copy of the lock, which a child process keeps.
  void leave_lock() { lock_.close(); }

 private:
  std::string base_;
  std::string name_;
  std::string path_;
  os::Descriptor lock_;
};

// Names of all labs under `base`, leftovers included, sorted.
std::vector<std::string> list_labs(const std::string& base);

}  // namespace mrc::lab
