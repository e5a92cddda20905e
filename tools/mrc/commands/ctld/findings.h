// What `mrc map --watch --json` writes, line by line.
#pragma once

#include <optional>
#include <string>

#include "controller/healing.h"
#include "fabric/topology.h"
#include "os/descriptor.h"

namespace mrc::tool::ctld {

// Throws fabric::InputError for what is no such line, or names parts that the fabric does not have.
controller::Look read_findings(const std::string& line, const fabric::Topology& topology);

// The lines of a file or pipe, as they come.
class FindingsSource {
 public:
  // "-" is standard input. Throws fabric::InputError when the file cannot be read.
  explicit FindingsSource(const std::string& path);

  // Waits for it. Nothing when there is no further one, or when a signal came.
  std::optional<std::string> next();

 private:
  int descriptor() const;

  os::Descriptor file_;  // not of standard input
  std::string buffer_;
};

}  // namespace mrc::tool::ctld
