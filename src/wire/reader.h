// Reads big-endian fields out of a byte span. Never touches a byte outside it.
//
// Reading past the end yields zero and marks the reader failed for good, so that a caller may read
// a whole header and ask once at the end whether all of it was there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mrc::wire {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool failed() const { return failed_; }
  std::size_t left() const { return rest_.size(); }
  std::span<const std::byte> rest() const { return rest_; }

  std::uint8_t u8() { return static_cast<std::uint8_t>(big_endian(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(big_endian(2)); }
  std::uint32_t u24() { return static_cast<std::uint32_t>(big_endian(3)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(big_endian(4)); }
  std::uint64_t u64() { return big_endian(8); }

  // The next `count` bytes as a view, or an empty one if there are not that many.
  std::span<const std::byte> take(std::size_t count) {
    if (count > rest_.size()) {
      fail();
      return {};
    }
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  void skip(std::size_t count) { take(count); }

  // Fills `out` with the next bytes, or with zeros if there are not that many.
  template <std::size_t N>
  void copy_to(std::span<std::uint8_t, N> out) {
    const auto bytes = take(out.size());
    std::size_t i = 0;
    for (; i < bytes.size(); ++i)
      out[i] = std::to_integer<std::uint8_t>(bytes[i]);
    for (; i < out.size(); ++i)
      out[i] = 0;
  }

 private:
  std::uint64_t big_endian(std::size_t width) {
    std::uint64_t value = 0;
    for (const std::byte b : take(width))
      value = (value << 8) | std::to_integer<std::uint64_t>(b);
    return value;
  }
  void fail() {
    failed_ = true;
    rest_ = {};
  }

  std::span<const std::byte> rest_;
  bool failed_ = false;
};

}  // namespace mrc::wire
