// A frame, taken apart header by header for a reader.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "demo/topology.h"

namespace mrc::demo {

struct HeaderLine {
  std::string header;
  std::string content;
  std::string remark;
};

// Reads everything off the bytes. Empty when they are not a frame.
std::vector<HeaderLine> tell_frame(std::span<const std::byte> frame);

}  // namespace mrc::demo
