// Options and the request of the kernel for IPv6 flow labels. The kernel's header has them too, but
// leaves them out beside some C libraries, which do not have them all.
#pragma once

#include <netinet/in.h>

#include <cstdint>

namespace mrc::nic {

inline constexpr int kIpv6FlowInfo = 11;  // hand the label of received packets out
inline constexpr int kIpv6FlowLabelManager = 32;
inline constexpr int kIpv6FlowInfoSend = 33;  // take the label from the destination address
inline constexpr std::uint32_t kIpv6FlowLabelMask = 0xF'FFFF;
inline constexpr std::uint8_t kFlowLabelGet = 0;
inline constexpr std::uint8_t kFlowLabelPut = 1;
inline constexpr std::uint16_t kFlowLabelCreate = 1;
inline constexpr std::uint8_t kFlowLabelSharedByAll = 255;

struct Ipv6FlowLabelRequest {
  in6_addr destination;
  std::uint32_t label;  // network order
  std::uint8_t action;
  std::uint8_t share;
  std::uint16_t flags;
  std::uint16_t expires_s;
  std::uint16_t linger_s;
  std::uint32_t padding;
};
static_assert(sizeof(Ipv6FlowLabelRequest) == 32);

}  // namespace mrc::nic
