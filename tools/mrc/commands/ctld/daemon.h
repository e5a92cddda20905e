// The controller of one device: sets it up from a file, logs EV events, reads the file again when
// told to.
#pragma once

#include <cstdint>
#include <string>

#include "commands/ctld/event_log.h"
#include "controller/session.h"
#include "controller/setup_keeper.h"

namespace mrc::tool::ctld {

// What the last reload came to: where a Daemon writes it, and whoever asked for it reads it.
struct ReloadResult {
  std::uint64_t number = 0;  // of the reload, counted from 1; 0: there was none
  std::string problem;       // empty: the file was applied
};
ReloadResult last_reload(const std::string& directory);

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
  // What became of it goes to the log and to whoever waits in await_reload().
  void reload();
  // False: it is time to end.
  bool on_signal(int descriptor);

  const controller::Session* session_;
  std::string file_;
  controller::SetupKeeper keeper_;
  EventLog log_;
  std::uint64_t reloads_;
};

}  // namespace mrc::tool::ctld
