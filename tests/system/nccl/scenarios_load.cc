// Scenarios about how NCCL finds, loads and unloads the plug-in.
#include <dirent.h>

#include <string>
#include <thread>

#include "link.h"
#include "scenarios.h"

namespace mrc::test {
namespace {

constexpr int kCycles = 12;
// What NCCL looks for when it knows no other name.
constexpr const char* kNoName = "libnccl-net.so";

std::size_t entries_of(const char* folder) {
  DIR* const opened = opendir(folder);
  MRC_CHECK(opened != nullptr);
  std::size_t count = 0;
  while (const dirent* entry = readdir(opened))
    count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(opened);
  return count;
}

std::size_t times_in(const std::string& text, const char* what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

// One life of NCCL in a process: load, init, connect, a message each way, finalize, unload.
void live_once(const Setting& setting, const Meeting& meeting, int cycle) {
  Driver driver(cycle == 0 ? setting.plugin : kNoName, setting.version);
  driver.init();
  const int other = 1 - setting.rank;
  Link link = make_link(driver, meeting,
                        {.rank = setting.rank, .next = other, .previous = other, .number = cycle});
  {
    const std::size_t size = 100'000 + static_cast<std::size_t>(cycle);
    Buffer in(driver, link.receive, size);
    Buffer out(driver, link.send, size);
    in.clear();
    out.fill(static_cast<std::uint64_t>(cycle * 2 + setting.rank), size);
    void* const receive = post_receive(driver, link.receive, in, size, 0);
    void* const send = post_send(driver, link.send, out, size, 0);
    MRC_CHECK(finish(driver, receive) == size && finish(driver, send) == size);
    in.check(static_cast<std::uint64_t>(cycle * 2 + other), size);
  }
  close_link(driver, link);
}

}  // namespace

void old_name(const Setting& setting) {
  for (int cycle = 0; cycle < 2; ++cycle) {
    Driver driver(setting.plugin, setting.version);
    MRC_CHECK(driver.name() == "MRC");
    MRC_CHECK(driver.try_init() == Result::kSuccess);
  }
  MRC_CHECK(times_in(Driver::log_text(), "NCCL_NET_PLUGIN=openmrc NCCL_NET=OpenMRC") == 1);
}

void reload(const Setting& setting) {
  const Meeting meeting(setting.directory, setting.rank);
  // Sanitizers start a thread of theirs with the first of ours.
  std::thread([] {}).join();
  const std::size_t threads = entries_of("/proc/self/task");
  std::size_t descriptors = 0;
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    live_once(setting, meeting, cycle);
    // What the library opens once and keeps is open after the first time.
    const std::size_t now = entries_of("/proc/self/fd");
    if (cycle == 0) descriptors = now;
    MRC_CHECK(now <= descriptors);
    const Patience patience("the engine threads to end");
    while (entries_of("/proc/self/task") > threads)
      patience.wait();
  }
}

}  // namespace mrc::test
