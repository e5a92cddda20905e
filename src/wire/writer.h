// Writes big-endian fields into a byte span. Never touches a byte outside it.
//
// Writing past the end writes nothing and marks the writer failed for good; the caller asks once at
// the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "wire/byte_order.h"

namespace mrc::wire {

class ByteWriter {
 public:
  explicit ByteWriter(std::span<std::byte> bytes) : bytes_(bytes) {}

  bool failed() const { return failed_; }
  // Bytes written so far, or 0 once something did not fit.
  std::size_t written() const { return failed_ ? 0 : at_; }
  std::size_t left() const { return failed_ ? 0 : bytes_.size() - at_; }

  void u8(std::uint8_t value) { number(value); }
  void u16(std::uint16_t value) { number(value); }
  void u24(std::uint32_t value) {
    const auto room = claim(3);
    if (room.empty()) return;
    room[0] = static_cast<std::byte>(value >> 16 & 0xFF);
    store_big_endian(room.data() + 1, static_cast<std::uint16_t>(value & 0xFFFF));
  }
  void u32(std::uint32_t value) { number(value); }
  void u64(std::uint64_t value) { number(value); }

  void zeros(std::size_t count) {
    for (std::byte& b : claim(count))
      b = std::byte{0};
  }

  template <std::size_t N>
  void copy_from(std::span<const std::uint8_t, N> from) {
    const auto room = claim(from.size());
    if (!room.empty()) std::memcpy(room.data(), from.data(), room.size());
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
  template <typename T>
  void number(T value) {
    const auto room = claim(sizeof(T));
    if (!room.empty()) store_big_endian(room.data(), value);
  }

  std::span<std::byte> bytes_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace mrc::wire
