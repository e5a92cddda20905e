#include "commands/drain/quiet.h"

#include <fmt/core.h>

#include <cstdio>
#include <thread>
#include <unordered_map>

#include "fabric/topology.h"
#include "launch/lab_links.h"
#include "os/interrupt.h"
#include "text.h"

namespace mrc::tool::drain {
namespace {

using Ms = std::chrono::milliseconds;

constexpr Ms kPause{20};
constexpr Ms kTellEvery{1'500};
constexpr Ms kQuiet{500};     // without a frame, then a part of a lab is out of use
constexpr Ms kOnTheWay{200};  // longer than any packet is on its way

std::string names(const std::vector<controller::FabricDrains::Process>& processes) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < processes.size() && i < kShown; ++i)
    text += fmt::format("{}process {} of host {}", i == 0 ? "" : ", ", processes[i].pid,
                        processes[i].host);
  if (processes.size() > kShown) text += fmt::format(" and {} more", processes.size() - kShown);
  return text;
}

// Bytes that have crossed any of these links.
std::uint64_t carried(lab::ControlClient& lab, const std::vector<fabric::LinkId>& links) {
  std::unordered_map<std::uint32_t, std::uint64_t> bytes;
  for (const LabLinks::Link& link : ask_links(lab).links)
    bytes[link.number] = link.bytes + link.queued;
  std::uint64_t sum = 0;
  for (const fabric::LinkId link : links)
    if (const auto found = bytes.find(fabric::index(link)); found != bytes.end())
      sum += found->second;
  return sum;
}

}  // namespace

bool Waiter::go_on() {
  if (os::Interrupt::raised() || Clock::now() >= end_) return false;
  if (Clock::now() - told_ >= kTellEvery) {
    fmt::print("{}: waiting for {}\n", name_, obstacle_);
    std::fflush(stdout);
    told_ = Clock::now();
  }
  std::this_thread::sleep_for(kPause);
  return true;
}

Outcome Waiter::given_up() const {
  return os::Interrupt::raised() ? Outcome::kInterrupted : Outcome::kTimeout;
}

Outcome Waiter::until_followed(const controller::FabricDrains& drains, bool mind_stranded) {
  for (;;) {
    const controller::FabricDrains::Progress now = drains.progress();
    if (now.stranded && mind_stranded) {
      obstacle_ =
          fmt::format("{} of {}", counted(now.stranded->queue_pairs, "queue pair", "queue pairs"),
                      names({now.stranded->process}));
      return Outcome::kStranded;
    }
    if (now.behind.empty()) return Outcome::kDone;
    obstacle_ = names(now.behind);
    if (!go_on()) return given_up();
  }
}

Outcome Waiter::until_quiet(FabricNodes& nodes, const fabric::DrainTarget& target) {
  if (!nodes.lab) {
    std::this_thread::sleep_for(kOnTheWay);
    return Outcome::kDone;
  }
  const auto links = fabric::links_of(target, fabric::Topology(nodes.spec));
  std::uint64_t before = carried(*nodes.lab, links);
  for (Clock::time_point since = Clock::now(); Clock::now() - since < kQuiet;) {
    obstacle_ = "frames that still go there";
    if (!go_on()) return given_up();
    const std::uint64_t now = carried(*nodes.lab, links);
    if (now != before) since = Clock::now();
    before = now;
  }
  return Outcome::kDone;
}

}  // namespace mrc::tool::drain
