#include "nic/fork_guard.h"

#include <pthread.h>

#include "os/host_bug.h"

namespace mrc::nic {
namespace {

std::atomic<std::uint32_t> g_generation{0};

void on_fork_in_child() {
  if (MRC_HOST_BUG(kChildUsesTheDevice)) return;
  g_generation.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

std::atomic<std::uint32_t>& ForkGuard::current_generation() { return g_generation; }

ForkGuard::ForkGuard() {
  [[maybe_unused]] static const int kRegistered =
      pthread_atfork(nullptr, nullptr, &on_fork_in_child);
  generation_ = g_generation.load(std::memory_order_relaxed);
}

}  // namespace mrc::nic
