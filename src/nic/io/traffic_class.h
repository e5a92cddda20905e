// What a traffic class looks like in an IP header.
#pragma once

#include <cstdint>

#include "core/tx_packet.h"
#include "wire/ecn.h"
#include "wire/frame.h"

namespace mrc::nic {

constexpr std::uint8_t dscp_of(const wire::DscpMap& map, core::TrafficClass traffic_class) {
  switch (traffic_class) {
    case core::TrafficClass::kControl:
      return map.control;
    case core::TrafficClass::kTrimmable:
      return map.trimmable;
    case core::TrafficClass::kTrimmableRetransmission:
      return map.trimmable_retx;
    case core::TrafficClass::kNoTrim:
      break;
  }
  return map.no_trim;
}

// Marks on data say which path is congested; nothing reacts to marks on control packets.
constexpr wire::Ecn ecn_of(core::TrafficClass traffic_class) {
  return traffic_class == core::TrafficClass::kControl ? wire::Ecn::kNotEct : wire::Ecn::kEct0;
}

// DSCP and ECN as the one byte that IPv4 calls type of service and IPv6 traffic class.
constexpr std::uint8_t traffic_byte(std::uint8_t dscp, wire::Ecn ecn) {
  return static_cast<std::uint8_t>(dscp << 2 | static_cast<unsigned>(ecn));
}
constexpr std::uint8_t traffic_byte(const wire::DscpMap& map, core::TrafficClass traffic_class) {
  return traffic_byte(dscp_of(map, traffic_class), ecn_of(traffic_class));
}

constexpr core::TrimState trim_state(wire::TrimMark mark) {
  switch (mark) {
    case wire::TrimMark::kTrimmed:
      return core::TrimState::kTrimmed;
    case wire::TrimMark::kTrimmedLastHop:
      return core::TrimState::kTrimmedLastHop;
    case wire::TrimMark::kNone:
      break;
  }
  return core::TrimState::kWhole;
}

}  // namespace mrc::nic
