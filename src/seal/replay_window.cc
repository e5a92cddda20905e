#include "seal/replay_window.h"

#include <algorithm>

namespace mrc::seal {

void ReplayWindow::mark(std::uint64_t number) {
  if (!any_ || (number > highest_ && number - highest_ >= kSize)) {
    std::fill(words_.begin(), words_.end(), 0);
    highest_ = number;
    any_ = true;
  }
  // Places that numbers skipped over come to stand on still say what was seen a window ago.
  while (highest_ < number) {
    ++highest_;
    if (highest_ % 64 == 0 && number - highest_ >= 64) {
      words_[word(highest_)] = 0;
      highest_ += 63;
    } else {
      words_[word(highest_)] &= ~bit(highest_);
    }
  }
  words_[word(number)] |= bit(number);
}

}  // namespace mrc::seal
