#include "commands/view/serve.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "os/interrupt.h"
#include "os/kernel_random.h"

namespace mrc::tool::view_tool {
namespace {

constexpr int kPollMs = 50;

}  // namespace

std::string fresh_token() {
  os::KernelRandom random;
  return fmt::format("{:016x}{:016x}", random.next64(), random.next64());
}

void serve(PageServer& server, const std::function<bool()>& look) {
  using Clock = std::chrono::steady_clock;
  const auto period = std::chrono::milliseconds(kLookMs);
  Clock::time_point next = Clock::now();
  bool looks = look != nullptr;
  while (!os::Interrupt::raised()) {
    if (looks && Clock::now() >= next) {
      looks = look();
      next = std::max(next + period, Clock::now());
    }
    server.poll(kPollMs);
  }
}

}  // namespace mrc::tool::view_tool
