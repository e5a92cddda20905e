// A file that one process at a time may hold. The kernel frees it however that process ends.
#pragma once

#include <string>

#include "os/descriptor.h"

namespace mrc::tool {

class InstanceLock {
 public:
  // Takes it and writes our process id into it; creates it if need be. Throws std::runtime_error
  // when the system refuses.
  explicit InstanceLock(const std::string& path);

  bool held() const { return file_.valid(); }
  // The process that has it when we do not; 0 when unknown.
  int holder() const { return holder_; }

 private:
  os::Descriptor file_;
  int holder_ = 0;
};

}  // namespace mrc::tool
