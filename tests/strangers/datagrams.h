// Bytes that were changed on the way or made up: whole frames of plain mode, and sealed datagrams.
#pragma once

#include <cstdint>

#include "strangers/tally.h"

namespace mrc::strangers {

// Frames with one to three bits turned over. No such change escapes the ICRC (a CRC-32 tells up to
// three wrong bits in a frame from none); bits that it leaves out may change nothing but what
// switches may change.
void damage_frames(std::uint64_t packets, std::uint64_t seed, Tally& tally);

// Sealed datagrams, changed, of another sender, or opened before. A row says so where OpenSSL is
// not there.
void damage_sealed(std::uint64_t packets, std::uint64_t seed, Tally& tally);

}  // namespace mrc::strangers
