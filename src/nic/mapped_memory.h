// Whether the program's memory is still there.
//
// A network card holds on to registered pages; we read and write them when packets leave and
// arrive. A program that unmapped a buffer which is still registered or has work outstanding loses
// that work, not its life. Whoever unmaps between the question and the use is beyond help
// (docs/adr/0018-unmapped-memory.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.h"

namespace mrc::nic {

class MappedMemory {
 public:
  // A round begins. Answers are good for the rounds of the next kTrustNs: a round lasts as long
  // when there is much to do, and small messages come and go in a tenth of it.
  static constexpr DurationNs kTrustNs = 50 * kMicrosecondNs;
  void begin_round(TimeNs now) {
    now_ = now;
    if (now - asked_at_ > kTrustNs) end_ = begin_ = 0;
  }
  // Asks the kernel, where there is much of it some pages ahead, and remembers the answer.
  bool holds(std::span<const std::byte> bytes);

 private:
  bool ask(std::uintptr_t begin, std::uintptr_t end);

  std::uintptr_t begin_ = 0;
  std::uintptr_t end_ = 0;
  TimeNs asked_at_ = 0;
  TimeNs now_ = 0;
};

}  // namespace mrc::nic
