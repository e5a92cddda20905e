#include "fabric/host_address.h"

namespace mrc::fabric {
namespace {

constexpr std::uint64_t kNetwork = 0xFD00'0000'0000'0000;
constexpr unsigned kPlaneShift = 32;
constexpr std::size_t kNumberAt = 12;  // of the host, four bytes

}  // namespace

wire::IpAddress host_address(unsigned plane, unsigned host) {
  return wire::ipv6_address(kNetwork | std::uint64_t{plane + 1} << kPlaneShift,
                            std::uint64_t{host} + 1);
}

std::optional<unsigned> host_of_address(unsigned plane, const wire::IpAddress& address) {
  std::uint32_t number = 0;
  for (std::size_t i = kNumberAt; i < address.bytes.size(); ++i)
    number = number << 8 | address.bytes[i];
  if (number == 0) return std::nullopt;
  const unsigned host = number - 1;
  if (host_address(plane, host) != address && host_address(0, host) != address) return std::nullopt;
  return host;
}

}  // namespace mrc::fabric
