// The C boundary: how calls tell of an error, and that nothing is thrown into the program.
//
// The API has four conventions, each with a function here. In all of them errno says why, also
// where the value returned does, and success leaves errno as it was. docs/api.md has the table of
// calls; exhausted memory becomes ENOMEM.
#pragma once

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <new>
#include <utility>

#include "api/refusal.h"

namespace mrc::api {

// Some calls of the controller have a complete list of errors: whatever else goes wrong there is
// EIO. An empty list has them all.
using ErrorList = std::initializer_list<int>;

// Which call of the API it is, for the log: the name of the function that has this as a default
// argument filled in.
using Call = const char*;

// Calls `body`, which returns an errno value, and returns it.
template <typename Body>
int caught(Body&& body, ErrorList documented, Call call) noexcept {
  const int before = errno;
  int error = 0;
  begin_call();
  try {
    error = std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    error = ENOMEM;
  }
  const bool listed = documented.size() == 0 ||
                      std::find(documented.begin(), documented.end(), error) != documented.end();
  if (error != 0) end_call(error, call);
  if (error != 0 && !listed) error = EIO;
  errno = error == 0 ? before : error;
  return error;
}

// 0, or the errno value itself: most calls that have a namesake in verbs.
template <typename Body>
int value_on_error(Body&& body, Call call = __builtin_FUNCTION()) noexcept {
  return caught(std::forward<Body>(body), {}, call);
}

// 0, or -1.
template <typename Body>
int minus_one_on_error(Body&& body, ErrorList documented = {},
                       Call call = __builtin_FUNCTION()) noexcept {
  return caught(std::forward<Body>(body), documented, call) == 0 ? 0 : -1;
}

// A pointer, or none. `body` fills `result`.
template <typename T, typename Body>
T* null_on_error(T*& result, Body&& body, Call call = __builtin_FUNCTION()) noexcept {
  return caught(std::forward<Body>(body), {}, call) == 0 ? result : nullptr;
}

// How many there were, or `failure(errno value)`. `body` fills `count`.
template <typename Body, typename Failure>
int count_or(int& count, Body&& body, const Failure& failure,
             Call call = __builtin_FUNCTION()) noexcept {
  const int error = caught(std::forward<Body>(body), {}, call);
  return error == 0 ? count : failure(error);
}

}  // namespace mrc::api
