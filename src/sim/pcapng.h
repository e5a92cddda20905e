// Writes captures in the pcapng format, times in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>

#include "sim/event_queue.h"

namespace mrc::sim {

class PcapngWriter {
 public:
  // Begins the file. The stream must outlive the writer.
  explicit PcapngWriter(std::ostream& out);

  // Every interface comes before its first packet; returns its number. `snap_bytes` is the longest
  // part of a frame that is written, 0 = all of it.
  std::uint32_t add_interface(const std::string& name, std::uint32_t snap_bytes);
  // `bytes` may be the beginning of a frame that was longer.
  void add_packet(std::uint32_t interface, Time at, std::span<const std::byte> bytes,
                  std::uint32_t original_bytes);

 private:
  void block(std::uint32_t type, const std::string& body);

  std::ostream& out_;
  std::uint32_t interfaces_ = 0;
};

}  // namespace mrc::sim
