// The page of one device of this process: made, written and removed.
//
// It lies in a folder of the user's own, is locked as long as the process lives, and is closed to
// others unless a group is named. A process that is killed leaves its page behind, whole; the next
// device of the user removes it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "node/config.h"
#include "node/node_state_files.h"
#include "node/telemetry_page.h"

namespace mrc::node {

// Not for several threads at once.
class TelemetryWriter {
 public:
  // `error` is one line for a person; it is set as well where there is a page that the group, which
  // could not be given it, cannot read.
  static std::unique_ptr<TelemetryWriter> open(const TelemetryPlace& place, std::string& error);
  ~TelemetryWriter();
  TelemetryWriter(const TelemetryWriter&) = delete;
  TelemetryWriter& operator=(const TelemetryWriter&) = delete;

  void write(const TelemetryBody& body);
  // The process ends in order.
  void remove();

 private:
  TelemetryWriter(node_files::LifeDescriptor lock, std::string path, std::byte* page);

  node_files::LifeDescriptor lock_;
  std::string path_;
  std::byte* page_;
  pid_t owner_;
  std::uint64_t version_ = 0;
};

// Who we are, for TelemetryBody::process; the processor time is as of now.
TelemetryProcess own_process();

}  // namespace mrc::node
