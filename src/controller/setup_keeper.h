// The setup of one device over time: what a controller has set, and how it goes from there to what
// a file wants, also when the process was killed in the middle of it and started again.
#pragma once

#include <string>

#include "controller/apply.h"
#include "controller/journal.h"
#include "controller/session.h"
#include "controller/setup_file.h"

namespace mrc::controller {

// One for each device; the caller sees to that.
class SetupKeeper {
 public:
  explicit SetupKeeper(const Session& session)
      : session_(&session), journal_(session.directory()), current_(journal_.known()) {}

  // DeviceChanged: what is on the device now is known all the same, here and to the next process.
  // Any other error: the device is as it was.
  Applied apply(const std::string& file);

 private:
  const Session* session_;
  Journal journal_;
  Setup current_;
};

}  // namespace mrc::controller
