// The ICRC of a datagram whose IP and UDP headers the kernel writes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/codec.h"
#include "wire/frame.h"
#include "wire/icrc.h"
#include "wire/ip_address.h"

namespace mrc::nic {

// The header fields that enter the ICRC and are the same for all datagrams of a flow.
struct FlowAddresses {
  wire::IpAddress source;
  wire::IpAddress destination;
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
};

// The part of the ICRC that the headers make, kept for the lengths used last: most datagrams of a
// flow have one of few lengths.
class IcrcPrefixes {
 public:
  // `transport_length` as in wire::begin_icrc().
  wire::Icrc begin(const FlowAddresses& flow, std::size_t transport_length) {
    Entry& entry = entries_[transport_length / 4 % entries_.size()];
    if (entry.transport_length != transport_length) {
      entry.transport_length = transport_length;
      wire::FrameFormat format;
      format.udp_port = flow.destination_port;
      wire::FrameHeader header;
      header.source = flow.source;
      header.destination = flow.destination;
      header.entropy = flow.source_port;
      entry.icrc = wire::begin_icrc(format, header, transport_length);
    }
    return entry.icrc;
  }
  void forget() {
    for (Entry& entry : entries_)
      entry.transport_length = 0;
  }

 private:
  struct Entry {
    std::size_t transport_length = 0;  // no transport part is that short
    wire::Icrc icrc;
  };
  std::array<Entry, 4> entries_;
};

}  // namespace mrc::nic
