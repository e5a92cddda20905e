// A descriptor that becomes readable when a file of a directory may have been replaced.
#pragma once

#include <string>

#include "os/descriptor.h"

namespace mrc::node {

// Watches by inotify. Where that cannot be had (no instance left, directory gone), a timer makes
// the descriptor readable four times a second instead, and each time inotify is tried again. The
// descriptor stays the same. Threads: descriptor() any; acknowledge() one at a time.
class DirectoryWatch {
 public:
  // 0 or an errno.
  int open(const std::string& directory);
  int descriptor() const { return epoll_.get(); }
  void acknowledge();

 private:
  void try_watching();
  void drain_notifications();
  void set_timer(bool on);

  std::string directory_;
  os::Descriptor epoll_;
  os::Descriptor notify_;
  os::Descriptor timer_;
  int watch_ = -1;
  bool polling_ = false;
};

}  // namespace mrc::node
