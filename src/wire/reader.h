// Reads big-endian fields out of a byte span. Never touches a byte outside it.
//
// Reading past the end yields zero and marks the reader failed for good, so that a caller may read
// a whole header and ask once at the end whether all of it was there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "wire/byte_order.h"

namespace mrc::wire {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool failed() const { return failed_; }
  std::size_t left() const { return rest_.size(); }
  std::span<const std::byte> rest() const { return rest_; }

  std::uint8_t u8() { return number<std::uint8_t>(); }
  std::uint16_t u16() { return number<std::uint16_t>(); }
  std::uint32_t u24() {
    const std::uint32_t top = u8();
    return top << 16 | u16();
  }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }

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
    if (bytes.empty()) {
      for (std::uint8_t& byte : out)
        byte = 0;
    } else {
      std::memcpy(out.data(), bytes.data(), bytes.size());
    }
  }

 private:
  template <typename T>
  T number() {
    const auto bytes = take(sizeof(T));
    return bytes.empty() ? T{0} : load_big_endian<T>(bytes.data());
  }
  void fail() {
    failed_ = true;
    rest_ = {};
  }

  std::span<const std::byte> rest_;
  bool failed_ = false;
};

}  // namespace mrc::wire
