// The controller of one device: sets it up from a file, logs EV events, reads the file again when
// told to.
#pragma once

#include <string>

#include "commands/ctld/event_log.h"
#include "controller/session.h"
#include "controller/setup_keeper.h"

namespace mrc::tool::ctld {

class Daemon {
 public:
  // The caller holds the device's lock. Throws CtlError or InputError when the file cannot be
  // applied; the device is then as it was, unless it is DeviceChanged.
  Daemon(const controller::Session& session, std::string file);

  // Until SIGTERM or SIGINT, which must be blocked in all threads, as SIGHUP must. Everything that
  // is set stays.
  void run();

 private:
  void apply(const char* what);
  void reload();
  // False: it is time to end.
  bool on_signal(int descriptor);

  const controller::Session* session_;
  std::string file_;
  controller::SetupKeeper keeper_;
  EventLog log_;
};

}  // namespace mrc::tool::ctld
