#include "commands/ctld/daemon.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <utility>

#include "controller/event_queue.h"
#include "os/descriptor.h"
#include "text.h"

namespace mrc::tool::ctld {
namespace {

// A burst of events must not keep signals waiting.
constexpr unsigned kEventsAtOnce = 256;

void say(const std::string& line) {
  fmt::print("{} {}\n", wall_time(), line);
  std::fflush(stdout);
}

}  // namespace

Daemon::Daemon(const controller::Session& session, std::string file)
    : session_(&session), file_(std::move(file)), keeper_(session), log_(session) {
  apply("controls");
}

void Daemon::apply(const char* what) {
  const controller::Applied applied = keeper_.apply(file_);
  say(fmt::format("{} {} from {}: {} created, {} removed, {} kept", what, session_->device(), file_,
                  counted(applied.created, "profile", "profiles"), applied.removed, applied.kept));
}

void Daemon::reload() {
  try {
    apply("reloaded");
  } catch (const controller::DeviceChanged& error) {
    say(error.what());
  } catch (const std::exception& error) {
    say(fmt::format("{}; nothing changed", error.what()));
  }
}

bool Daemon::on_signal(int descriptor) {
  signalfd_siginfo info{};
  if (::read(descriptor, &info, sizeof(info)) != sizeof(info)) return true;
  if (info.ssi_signo != SIGHUP) return false;
  reload();
  return true;
}

void Daemon::run() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int number : {SIGHUP, SIGINT, SIGTERM})
    ::sigaddset(&signals, number);
  const os::Descriptor stop(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  controller::EventQueue queue(*session_);
  say("listens for EV events");
  for (bool go_on = true; go_on;) {
    mrc_ctl_ev_event event{};
    unsigned taken = 0;
    while (taken < kEventsAtOnce && queue.next(event)) {
      say(log_.line(event));
      ++taken;
    }
    queue.arm();
    std::array<pollfd, 2> descriptors{{{queue.descriptor(), POLLIN, 0}, {stop.get(), POLLIN, 0}}};
    if (::poll(descriptors.data(), descriptors.size(), taken == kEventsAtOnce ? 0 : -1) < 0)
      continue;
    if (descriptors[0].revents != 0) queue.acknowledge();
    if (descriptors[1].revents != 0) go_on = on_signal(stop.get());
  }
  say(fmt::format("ends after {}; what is set stays", counted(log_.events(), "event", "events")));
}

}  // namespace mrc::tool::ctld
