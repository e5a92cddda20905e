// What a queue pair is told about its peer, from what the two ends said about themselves. The OCP
// API leaves that exchange to programs.
#pragma once

#include <cstdint>

#include "messages.h"

namespace mrc::nccl {

// What this end's device can do at most.
struct Limits {
  std::uint8_t window = 0;       // units of 128 packets
  std::uint16_t immediates = 0;  // under way from it
};

struct Agreement {
  std::uint8_t window = 0;         // MRC_QP_MPR; 0: left to the device
  std::uint16_t immediates = 0;    // MRC_QP_MAX_WIMM
  std::uint32_t capabilities = 0;  // MRC_QP_CAP
};

// A peer that said nothing is like us: it is an earlier version of this plug-in.
Agreement agree(const Message& own, const Message& peer, const Limits& limits);

}  // namespace mrc::nccl
