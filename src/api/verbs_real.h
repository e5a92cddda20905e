// The real libibverbs, for devices that are not ours. It is found by the normal search path, looked
// for when first needed, and need not exist.
//
// MRC_LIBIBVERBS names it where the search does not find it.
#pragma once

#include <cerrno>

namespace mrc::api {

// A function of the real library, or none.
void* real_symbol(const char* name);

// The real library's function of that name, or none: MRC_REAL(ibv_reg_mr).
#define MRC_REAL(name)                                                       \
  ([]() -> decltype(&::name) {                                               \
    static const auto kFound =                                               \
        reinterpret_cast<decltype(&::name)>(::mrc::api::real_symbol(#name)); \
    return kFound;                                                           \
  }())

// Calls the real library's function for an object that is not ours. Without an object, or without a
// real library, the call fails: it gives `failure` and sets errno to EINVAL.
template <typename Result, typename... Parameters, typename... Arguments>
Result forward_or(Result failure, const void* object, Result (*real)(Parameters...),
                  Arguments... arguments) {
  if (object != nullptr && real != nullptr) return real(arguments...);
  errno = EINVAL;
  return failure;
}

}  // namespace mrc::api
