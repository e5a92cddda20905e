#include "os/own_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <utility>

#include "os/descriptor.h"
#include "os/host_bug.h"

namespace mrc::os {
namespace {

bool is_mapped(std::uintptr_t begin, std::uintptr_t end) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  std::array<unsigned char, 4096> resident;
  for (std::uintptr_t at = begin & ~(page - 1); at < end; at += page * resident.size()) {
    const std::size_t bytes = std::min<std::size_t>(end - at, page * resident.size());
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    if (mincore(reinterpret_cast<void*>(at), bytes, resident.data()) != 0) return errno != ENOMEM;
  }
  return true;
}

// The lines of a file one by one, without allocating: a program that is out of memory must not be
// told that what it has is not there. Lines are cut where the buffer ends.
class Lines {
 public:
  explicit Lines(const char* path) : file_(::open(path, O_RDONLY | O_CLOEXEC)) {}

  bool works() const { return file_.valid(); }
  // Ends with a zero, for sscanf; null behind the last.
  const char* next() {
    for (;;) {
      char* const line = buffer_.data() + at_;
      void* const end = std::memchr(line, '\n', filled_ - at_);
      if (end != nullptr) {
        *static_cast<char*>(end) = '\0';
        at_ = static_cast<std::size_t>(static_cast<char*>(end) - buffer_.data()) + 1;
        return line;
      }
      if (!fill()) return nullptr;
    }
  }

 private:
  bool fill() {
    std::memmove(buffer_.data(), buffer_.data() + at_, filled_ - at_);
    filled_ -= std::exchange(at_, 0);
    if (filled_ == buffer_.size()) filled_ = 0;  // no line of the kernel's is as long
    const ssize_t got = ::read(file_.get(), buffer_.data() + filled_, buffer_.size() - filled_);
    if (got > 0) filled_ += static_cast<std::size_t>(got);
    return got > 0 || (got < 0 && errno == EINTR);
  }

  Descriptor file_;
  std::array<char, 16'384> buffer_;
  std::size_t at_ = 0;
  std::size_t filled_ = 0;
};

}  // namespace

// Mappings stand in the order of their addresses.
bool may_use(const void* start, std::size_t length, MemoryUse use) {
  const auto begin = reinterpret_cast<std::uintptr_t>(start);
  const std::uintptr_t end = begin + length;
  Lines mappings("/proc/self/maps");
  if (!mappings.works()) return is_mapped(begin, end);
  std::uintptr_t good_until = begin;
  while (good_until < end) {
    const char* const line = mappings.next();
    if (line == nullptr) return false;
    std::uintptr_t first = 0;
    std::uintptr_t last = 0;
    char read = '-';
    char write = '-';
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %c%c", &first, &last, &read, &write) != 4)
      continue;
    if (last <= good_until) continue;
    const bool needs_right = use == MemoryUse::kWrite && !MRC_HOST_BUG(kReadOnlyIsWritable);
    if (first > good_until || read != 'r' || (needs_right && write != 'w')) return false;
    good_until = last;
  }
  return true;
}

}  // namespace mrc::os
