// Planted bugs outside the engine: a test of the tests, as base/planted_bug.h is for the engine. In
// the mutants build the environment names the one that is on (PLANTED_BUG=kReplaysOpen), since what
// must catch them are whole programs. In every other build MRC_HOST_BUG(name) is the constant
// false.
#pragma once

#ifdef MRC_PLANTED_BUGS

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "os/environment.h"

namespace mrc::os {

enum class HostBug : std::uint8_t {
  kNone,
#define MRC_HOST_PLANTED(name, what, test) name,
#include "os/host_bugs.inc"
#undef MRC_HOST_PLANTED
};

// A name that nobody has ends the program: a bug that was never on would seem to survive.
inline HostBug host_bug_of_environment() {
  const char* const wanted = environment("PLANTED_BUG");
  if (wanted == nullptr) return HostBug::kNone;
#define MRC_HOST_PLANTED(name, what, test) \
  if (std::string_view(wanted) == #name) return HostBug::name;
#include "os/host_bugs.inc"
#undef MRC_HOST_PLANTED
  std::fprintf(stderr, "PLANTED_BUG: there is no %s\n", wanted);
  std::_Exit(2);
}

inline const HostBug active_host_bug = host_bug_of_environment();

}  // namespace mrc::os

#define MRC_HOST_BUG(name) (::mrc::os::active_host_bug == ::mrc::os::HostBug::name)

#else
#define MRC_HOST_BUG(name) false
#endif
