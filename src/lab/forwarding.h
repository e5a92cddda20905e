// What the switches and cables of a lab do to the bytes of a frame: the SRv6 step, the tunnel at
// the sender's cable, marks, trimming, damage. Functions of the frame alone; nothing here waits or
// remembers. All frames begin with an Ethernet header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "fabric/routing.h"
#include "lab/frame_pool.h"
#include "wire/frame.h"

namespace mrc::lab {

// Why a frame did not go on.
enum class DropCause : std::uint8_t {
  kMalformed,  // no IPv6, or shorter than its headers
  kNoRoute,    // a uSID that is not ours or no neighbour, an address of no host
  kHopLimit,
  kFull,       // no room in a queue
  kDown,       // on a cable that is down
  kLoss,       // a fault: random loss
  kBlackHole,  // a fault
  kHost,       // the host did not take it: no process, or its socket was full
};
inline constexpr unsigned kDropCauses = 8;
const char* drop_cause_name(DropCause cause);

struct Step {
  fabric::LinkId link = fabric::kNoLink;
  DropCause cause = DropCause::kMalformed;  // where there is no link
};

// uN at switch `at`: the active uSID must be the switch's own, the carrier is shifted (or replaced
// by the segment of the routing header), the hop limit falls by one, and the next uSID names the
// link. A frame without a link is to be dropped; its bytes may have changed.
Step forward_frame(const fabric::Routing& routing, const fabric::Node& at,
                   std::span<std::byte> frame);

// Which path the entropy of a plain frame (flow label and UDP source port) stands for. The EV of a
// path of the plane means that path. All other values get the paths in turn, in the order in which
// a host's port first uses them, so that as many of them as there are paths use every path once.
// Hosts begin at different paths, so that hosts with one value each do not all use the same.
class TunnelPaths {
 public:
  explicit TunnelPaths(const fabric::Routing& routing);
  fabric::Path path_of(unsigned plane, unsigned host, std::uint32_t entropy);

 private:
  static constexpr std::size_t kMaxKnown = 4'096;  // of a port; what comes later is spread by value
  const fabric::Routing* routing_;
  std::vector<std::unordered_map<std::uint32_t, std::uint16_t>> known_;  // by host and plane
};

// At the cable of host `source`: an IPv6 frame to the address of another host becomes an SRv6
// frame, as by a route with encapsulation in the host's kernel. Frames that are SRv6 already stay
// as they are. False with a cause: to be dropped.
bool enter_tunnel(const fabric::Routing& routing, TunnelPaths& paths, unsigned plane,
                  unsigned source, FramePool& pool, FrameId frame, DropCause& cause);

// How a port treats a frame, by the code point of its outermost header.
struct FrameClass {
  bool control = false;  // control and trimmed packets
  bool trimmable = false;
};
FrameClass classify(const wire::DscpMap& dscp, std::span<const std::byte> frame);

// Whether it is a write, not a probe, an answer or something of others.
bool carries_data(std::span<const std::byte> frame);

// Sets CE in the outermost header if the sender understands it. True when it was set or is set.
bool mark_congestion(std::span<std::byte> frame);

// wire::trim_frame for whichever process of the host the frame is meant. 0: not possible.
std::size_t trim(const wire::FrameFormat& format, std::span<std::byte> frame, bool last_hop);

// Flips one bit behind IP, UDP and BTH, so that the ICRC is wrong and the way is not.
void corrupt(std::span<std::byte> frame, std::uint64_t random);

}  // namespace mrc::lab
