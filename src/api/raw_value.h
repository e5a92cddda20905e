// Numbers of enumerations as programs in C hand them over: any number, not only those that have a
// name, which C++ does not allow an enumeration to hold.
#pragma once

#include <cstring>
#include <type_traits>

namespace mrc::api {

template <typename Enumeration>
int raw_value(const Enumeration& from) {
  static_assert(std::is_enum_v<Enumeration> && sizeof(Enumeration) == sizeof(int));
  int value = 0;
  std::memcpy(&value, &from, sizeof value);
  return value;
}

}  // namespace mrc::api
