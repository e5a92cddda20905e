// Expected failures as values: an error code for programs and a sentence for people.
#pragma once

#include <cstdint>
#include <utility>

#include "base/assert.h"

namespace mrc {

enum class ErrorCode : std::uint8_t {
  kOk,
  kInvalidArgument,
  kNotFound,
  kAlreadyExists,
  kBusy,
  kWrongState,
  kNoSpace,
  kTooLong,
  kUnsupported,
};

// An outcome without a value. `what` points to a string literal and says what was wrong.
class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  constexpr Status(ErrorCode code, const char* what) : code_(code), what_(what) {}

  constexpr bool ok() const { return code_ == ErrorCode::kOk; }
  constexpr ErrorCode code() const { return code_; }
  constexpr const char* what() const { return what_; }

 private:
  ErrorCode code_ = ErrorCode::kOk;
  const char* what_ = "";
};

// Either a value or the Status that explains why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Status error) : status_(error) {        // NOLINT(google-explicit-constructor)
    MRC_ASSERT(!error.ok());
  }

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }

  const T& value() const& {
    MRC_ASSERT(ok());
    return value_;
  }
  T&& value() && {
    MRC_ASSERT(ok());
    return std::move(value_);
  }

 private:
  Status status_;
  T value_{};
};

}  // namespace mrc
