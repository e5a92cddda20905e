// A capture of sealed packets made readable, for who has the key.
#pragma once

#include <cstdint>
#include <string>

#include "seal/key_ring.h"

namespace mrc::tool {

struct OpenedCapture {
  std::uint64_t frames = 0;
  std::uint64_t sealed = 0;
  std::uint64_t opened = 0;  // of these
  std::string damage;        // where the reading of the file ended early, and why
};

// Writes a copy of capture `from` to `to`, which must not exist, for its owner alone. Times,
// interfaces and frames that are not sealed stay as they are; a sealed one becomes what it would be
// had it been sent plain, ICRC included, with zeros behind it where it was longer. Throws a Failure
// when a file cannot be read or written.
OpenedCapture open_capture(const seal::KeyRing& ring, const std::string& from,
                           const std::string& to);

}  // namespace mrc::tool
