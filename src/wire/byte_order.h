// Numbers of a known width in memory, most significant byte first. Bounds are the caller's
// business.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace mrc::wire {

// Between the order of this machine and network order, either way.
template <typename T>
constexpr T network_order(T value) {
  static_assert(std::is_unsigned_v<T>);
  if constexpr (std::endian::native == std::endian::big || sizeof(T) == 1) {
    return value;
  } else if constexpr (sizeof(T) == 2) {
    return __builtin_bswap16(value);
  } else if constexpr (sizeof(T) == 4) {
    return __builtin_bswap32(value);
  } else {
    static_assert(sizeof(T) == 8);
    return __builtin_bswap64(value);
  }
}

template <typename T>
T load_big_endian(const std::byte* at) {
  T value = 0;
  std::memcpy(&value, at, sizeof value);
  return network_order(value);
}

template <typename T>
void store_big_endian(std::byte* at, T value) {
  value = network_order(value);
  std::memcpy(at, &value, sizeof value);
}

}  // namespace mrc::wire
