#include "seal/fork_mark.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "base/assert.h"

namespace mrc::seal {
namespace {

using Mark = std::atomic<std::uint64_t>;

// Ordinary memory, which a child inherits: what is counted up from.
Mark g_last{0};

Mark& mark_page() {
  static Mark& page = []() -> Mark& {
    const auto length = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* const memory =
        ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MRC_ASSERT(memory != MAP_FAILED);
    if (::madvise(memory, length, MADV_WIPEONFORK) != 0) {
      ::pthread_atfork(nullptr, nullptr, [] { mark_page().store(0, std::memory_order_relaxed); });
    }
    return *new (memory) Mark(0);
  }();
  return page;
}

}  // namespace

std::uint64_t fork_generation() {
  Mark& mark = mark_page();
  const std::uint64_t known = mark.load(std::memory_order_relaxed);
  if (known != 0) [[likely]]
    return known;
  // Of several threads that find it wiped one wins, and all get its number.
  const std::uint64_t fresh = g_last.fetch_add(1, std::memory_order_relaxed) + 1;
  std::uint64_t found = 0;
  return mark.compare_exchange_strong(found, fresh, std::memory_order_relaxed) ? fresh : found;
}

}  // namespace mrc::seal
