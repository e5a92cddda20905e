#include "nic/mapped_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "os/host_bug.h"

namespace mrc::nic {
namespace {

constexpr std::uintptr_t kAheadBytes = 128 << 10;  // about two bursts
constexpr std::size_t kMuch = 1024;                // a packet that others are likely to follow

bool is_mapped(std::uintptr_t begin, std::uintptr_t end) {
  // Only walks the list of mappings. Whatever else it complains about, they are there.
  void* const address = reinterpret_cast<void*>(begin);
  return ::msync(address, end - begin, MS_ASYNC) == 0 || errno != ENOMEM;
}

}  // namespace

bool MappedMemory::ask(std::uintptr_t begin, std::uintptr_t end) {
  if (end <= begin || !is_mapped(begin, end)) return false;
  begin_ = begin;
  end_ = end;
  asked_at_ = now_;
  return true;
}

bool MappedMemory::holds(std::span<const std::byte> bytes) {
  if (MRC_HOST_BUG(kTargetsNotLookedAt)) return true;
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t end = begin + bytes.size();
  if ((begin >= begin_ && end <= end_) || bytes.empty()) return true;
  static const auto kPage = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = begin / kPage * kPage;
  const std::uintptr_t last = (end + kPage - 1) / kPage * kPage;
  if (bytes.size() >= kMuch && ask(first, std::max(last, first + kAheadBytes))) return true;
  return end > begin && ask(first, last);
}

}  // namespace mrc::nic
