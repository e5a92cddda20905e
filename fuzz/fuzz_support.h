// What the fuzz targets share. A target reports a fault by aborting.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace mrc::fuzz {

// A property that must hold for every input.
inline void require(bool holds) {
  if (!holds) std::abort();
}

// Takes numbers off the front of the input; zeros when it is used up.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(std::as_bytes(std::span(data, size))) {}

  std::uint8_t u8() { return static_cast<std::uint8_t>(number(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(number(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }
  bool empty() const { return rest_.empty(); }

  std::span<const std::byte> take(std::size_t count) {
    const auto taken = rest_.first(std::min(count, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  std::uint64_t number(std::size_t width) {
    std::uint64_t value = 0;
    for (const std::byte b : take(width))
      value = value << 8 | std::to_integer<std::uint64_t>(b);
    return value;
  }

  std::span<const std::byte> rest_;
};

}  // namespace mrc::fuzz
