// At the C boundary: exhausted memory becomes ENOMEM, and nothing is thrown into the program.
#pragma once

#include <cerrno>
#include <new>
#include <utility>

namespace mrc::api {

// Calls `body`, which returns an errno value.
template <typename Body>
int guarded(Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

// Calls `body`, which returns an errno value after it has filled `result`; gives the result, or
// none and errno.
template <typename T, typename Body>
T* guarded_pointer(T*& result, Body&& body) noexcept {
  const int error = guarded(std::forward<Body>(body));
  if (error == 0) return result;
  errno = error;
  return nullptr;
}

// For calls that report by -1 and errno.
template <typename Body>
int guarded_minus_one(Body&& body) noexcept {
  const int error = guarded(std::forward<Body>(body));
  if (error == 0) return 0;
  errno = error;
  return -1;
}

}  // namespace mrc::api
