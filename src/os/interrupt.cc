#include "os/interrupt.h"

#include <array>
#include <atomic>
#include <csignal>

namespace mrc::os {
namespace {

constexpr std::array<int, 2> kSignals = {SIGINT, SIGTERM};
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int /*number*/) { interrupted.store(true, std::memory_order_relaxed); }

void install(void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  for (const int number : kSignals)
    sigaction(number, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  interrupted.store(false);
  install(on_signal, static_cast<int>(SA_RESETHAND));
}

Interrupt::~Interrupt() { install(SIG_DFL, 0); }

bool Interrupt::raised() { return interrupted.load(std::memory_order_relaxed); }

void Interrupt::clear() { interrupted.store(false, std::memory_order_relaxed); }

}  // namespace mrc::os
