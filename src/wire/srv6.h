// SRv6 with 16-bit segment ids (RFC 9800, NEXT-CSID, block of 32 bits): a path is an IPv6 address.
//
// Such a carrier address holds a 32-bit block and up to six uSIDs in the order of the hops. A node
// whose uSID stands first shifts the list by one and forwards to the next. Zero ends the list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "base/types.h"
#include "wire/ip_address.h"

namespace mrc::wire {

enum class UsidBlock : std::uint32_t {};
enum class Usid : std::uint16_t {};
inline constexpr Usid kNoUsid{0};
inline constexpr unsigned kMaxUsids = 6;

// Block and uSIDs in visiting order, zero filled. Refuses an empty list, more than six, and a zero
// in the list, which would end it early.
[[nodiscard]] Result<IpAddress> build_carrier(UsidBlock block, std::span<const Usid> usids);

[[nodiscard]] UsidBlock carrier_block(const IpAddress& carrier);
// The uSID at `position` (0..5); kNoUsid behind the end.
[[nodiscard]] Usid usid_at(const IpAddress& carrier, unsigned position);
// The uSID that decides where the packet goes now.
[[nodiscard]] Usid active_usid(const IpAddress& carrier);
// uSIDs before the first zero.
[[nodiscard]] unsigned usid_count(const IpAddress& carrier);

// What a node does to the destination address when the active uSID is its own: the 96 bits behind
// the block move left by 16, zeros come in on the right.
[[nodiscard]] IpAddress shift_carrier(const IpAddress& carrier);

// Whether nothing follows the active uSID: the packet ends here, unless a routing header goes on.
[[nodiscard]] bool at_last_usid(const IpAddress& carrier);

// What a node did with a packet whose active uSID is its own.
enum class UsidStep : std::uint8_t {
  kShifted,      // the carrier moved on to its next uSID
  kNextSegment,  // the carrier was used up, the segment of the routing header replaced it
  kEnd,          // the carrier was used up and there is no other: the path ends here
};

// The one segment a routing header of ours can hold and how many segments are still to come.
struct Segment {
  IpAddress address;
  std::uint8_t left = 0;
  friend bool operator==(const Segment&, const Segment&) = default;
};

// Performs that step. On kEnd nothing changes.
UsidStep advance(IpAddress& carrier, Segment& segment);

// Below: which number stands for which device.

// A contiguous range of uSIDs for one kind of device; device i has uSID first + i.
struct UsidRange {
  std::uint16_t first = 0;
  std::uint16_t count = 0;
  friend bool operator==(const UsidRange&, const UsidRange&) = default;
};

// One block per plane, and in it one range each for T0, T1 and T2 switches and host ports. A
// host-port uSID means something only at its T0. The defaults stay within 0x0001..0xDFFF, the range
// that switches accept without being told otherwise.
struct UsidPlan {
  std::uint32_t first_block = 0xFC00'0001;  // of plane 1: fc00:1::/32
  UsidRange host_port{.first = 0x0100, .count = 0x0F00};
  UsidRange t0{.first = 0x1000, .count = 0x7000};
  UsidRange t1{.first = 0x8000, .count = 0x4000};
  UsidRange t2{.first = 0xC000, .count = 0x2000};
  friend bool operator==(const UsidPlan&, const UsidPlan&) = default;
};

// Devices numbered from 0 within their plane.
struct PathAcrossT1 {
  PortId plane{1};
  unsigned source_t0 = 0;
  unsigned t1 = 0;
  unsigned destination_t0 = 0;
  unsigned host_port = 0;
};
struct PathWithinT0 {
  PortId plane{1};
  unsigned t0 = 0;
  unsigned host_port = 0;
};

// Ranges must not be empty, start at zero, run over 16 bits, or overlap.
[[nodiscard]] Status check_usid_plan(const UsidPlan& plan);
[[nodiscard]] UsidBlock plane_block(const UsidPlan& plan, PortId plane);
[[nodiscard]] Result<Usid> usid_in(const UsidRange& range, unsigned index);

// block : source T0 : T1 : destination T0 : host port.
[[nodiscard]] Result<IpAddress> path_carrier(const UsidPlan& plan, const PathAcrossT1& path);
// block : T0 : host port.
[[nodiscard]] Result<IpAddress> path_carrier(const UsidPlan& plan, const PathWithinT0& path);

}  // namespace mrc::wire
