#include "os/own_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

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

}  // namespace

// Mappings stand in the order of their addresses.
bool may_use(const void* start, std::size_t length, MemoryUse use) {
  const auto begin = reinterpret_cast<std::uintptr_t>(start);
  const std::uintptr_t end = begin + length;
  std::ifstream mappings("/proc/self/maps");
  if (!mappings) return is_mapped(begin, end);
  std::uintptr_t good_until = begin;
  std::string line;
  while (good_until < end && std::getline(mappings, line)) {
    std::uintptr_t first = 0;
    std::uintptr_t last = 0;
    char read = '-';
    char write = '-';
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %c%c", &first, &last, &read, &write) !=
        4)
      continue;
    if (last <= good_until) continue;
    if (first > good_until || read != 'r' || (use == MemoryUse::kWrite && write != 'w'))
      return false;
    good_until = last;
  }
  return good_until >= end;
}

}  // namespace mrc::os
