// What a profile of congestion control leaves open, as it is right for ends that are processes and
// for the rate of their ports. A network card's values are wrong for processes that share
// processors: a peer answers within microseconds, or after the milliseconds others had its
// processor.
#pragma once

#include <cstdint>

#include "core/config.h"
#include "nic/io/backend.h"

namespace mrc::nic {

// The parts of a back end that windows follow from.
struct SoftwarePorts {
  std::uint64_t bits_per_second = 0;  // of one of them
  unsigned ports = 1;
  std::uint64_t receive_buffer_bytes = 0;  // of all together
  std::uint32_t full_packet_bytes = 0;     // nominal
  unsigned burst_packets = 1;              // that leave with one system call
};
SoftwarePorts ports_of(const Backend& backend);

// Fills in what is 0. Whether the network trims is said already.
core::CcProfile software_cc(core::CcProfile given, const SoftwarePorts& ports);

}  // namespace mrc::nic
