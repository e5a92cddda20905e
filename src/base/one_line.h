// Names, keys and other people's words may hold anything; what we say about them is one line.
#pragma once

#include <algorithm>
#include <string>

namespace mrc {

inline std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7F; }, ' ');
  return text;
}

}  // namespace mrc
