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
#include <filesystem>
#include <fstream>
#include <utility>

#include "controller/event_queue.h"
#include "os/descriptor.h"
#include "output_file.h"
#include "text.h"

namespace mrc::tool::ctld {
namespace {

// A burst of events must not keep signals waiting.
constexpr unsigned kEventsAtOnce = 256;

void say(const std::string& line) {
  fmt::print("{} {}\n", wall_time(), line);
  std::fflush(stdout);
}

std::string result_path(const std::string& directory) { return directory + "/controller.reload"; }

}  // namespace

ReloadResult last_reload(const std::string& directory) {
  ReloadResult result;
  std::ifstream file(result_path(directory));
  if (!(file >> result.number)) return {};
  file.get();
  std::getline(file, result.problem);
  return result;
}

Daemon::Daemon(const controller::Session& session, std::string file)
    : session_(&session),
      file_(std::move(file)),
      keeper_(session),
      log_(session),
      reloads_(last_reload(session.directory()).number) {
  apply("controls");
}

void Daemon::apply(const char* what) {
  const controller::Applied applied = keeper_.apply(file_);
  say(fmt::format("{} {} from {}: {} created, {} removed, {} kept", what, session_->device(), file_,
                  counted(applied.created, "profile", "profiles"), applied.removed, applied.kept));
}

void Daemon::reload() {
  std::string problem;
  try {
    apply("reloaded");
  } catch (const controller::DeviceChanged& error) {
    problem = error.what();
  } catch (const std::exception& error) {
    problem = fmt::format("{}; nothing changed", error.what());
  }
  if (!problem.empty()) say(problem);
  const std::string path = result_path(session_->directory());
  try {
    write_file(path + ".new", [&](std::ostream& out) { out << ++reloads_ << ' ' << problem; });
    std::filesystem::rename(path + ".new", path);
  } catch (const std::exception& error) {
    say(error.what());  // whoever waits will say that nothing was heard
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
