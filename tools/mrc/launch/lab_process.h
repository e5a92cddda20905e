// A lab that lives as long as this object, and no longer than this process.
#pragma once

#include <sys/types.h>

#include <string>

#include "lab/cluster.h"
#include "lab/control.h"
#include "lab/directory.h"

namespace mrc::tool {

class LabProcess {
 public:
  // Returns when hosts can connect. Throws Failure with the reason when it does not come up.
  LabProcess(const std::string& name, const lab::ClusterOptions& options);
  ~LabProcess();
  LabProcess(const LabProcess&) = delete;
  LabProcess& operator=(const LabProcess&) = delete;

  const lab::Directory& directory() const { return directory_; }
  lab::ControlClient& control() { return control_; }

 private:
  lab::Directory directory_;
  pid_t process_ = -1;
  lab::ControlClient control_;
};

}  // namespace mrc::tool
