// Writes big-endian fields into a byte span. Never touches a byte outside it.
//
// Writing past the end writes nothing and marks the writer failed for good; the caller asks once at
// the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mrc::wire {

class ByteWriter {
 public:
  explicit ByteWriter(std::span<std::byte> bytes) : bytes_(bytes) {}

  bool failed() const { return failed_; }
  // Bytes written so far, or 0 once something did not fit.
  std::size_t written() const { return failed_ ? 0 : at_; }
  std::size_t left() const { return failed_ ? 0 : bytes_.size() - at_; }

  void u8(std::uint8_t value) { big_endian(value, 1); }
  void u16(std::uint16_t value) { big_endian(value, 2); }
  void u24(std::uint32_t value) { big_endian(value, 3); }
  void u32(std::uint32_t value) { big_endian(value, 4); }
  void u64(std::uint64_t value) { big_endian(value, 8); }

  void zeros(std::size_t count) {
    for (std::byte& b : claim(count))
      b = std::byte{0};
  }

  template <std::size_t N>
  void copy_from(std::span<const std::uint8_t, N> from) {
    const auto room = claim(from.size());
    for (std::size_t i = 0; i < room.size(); ++i)
      room[i] = std::byte{from[i]};
  }

  // The next `count` bytes to be filled by the caller, or an empty span if there are not that many.
  std::span<std::byte> claim(std::size_t count) {
    if (failed_ || count > bytes_.size() - at_) {
      failed_ = true;
      return {};
    }
    const auto room = bytes_.subspan(at_, count);
    at_ += count;
    return room;
  }

 private:
  void big_endian(std::uint64_t value, std::size_t width) {
    const auto room = claim(width);
    for (std::size_t i = room.size(); i-- > 0;) {
      room[i] = static_cast<std::byte>(value & 0xFF);
      value >>= 8;
    }
  }

  std::span<std::byte> bytes_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace mrc::wire
