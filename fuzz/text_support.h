// What the fuzz targets for texts share: files that people write, and lines of strangers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/fuzz_support.h"

namespace mrc::fuzz {

inline std::string text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// What we tell people about their input: one line, whatever stood in it.
inline void require_one_line(std::string_view error) {
  require(!error.empty());
  require(std::none_of(error.begin(), error.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < ' ' || byte == 0x7F;
  }));
}

}  // namespace mrc::fuzz
