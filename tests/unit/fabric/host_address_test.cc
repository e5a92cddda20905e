#include "fabric/host_address.h"

#include <gtest/gtest.h>

namespace mrc::fabric {
namespace {

std::string text(const wire::IpAddress& address) {
  return std::string(wire::format_address(address).view());
}

TEST(HostAddress, CountsPlanesAndHostsFromOne) {
  EXPECT_EQ(text(host_address(0, 0)), "fd00:1::1");
  EXPECT_EQ(text(host_address(7, 4095)), "fd00:8::1000");
}

TEST(HostAddress, IsReadBackOnItsPlaneAndAsAGid) {
  EXPECT_EQ(host_of_address(3, host_address(3, 9)), 9u);
  EXPECT_EQ(host_of_address(3, host_address(0, 9)), 9u);
  EXPECT_FALSE(host_of_address(3, host_address(2, 9)));
  EXPECT_FALSE(host_of_address(0, wire::parse_address("fd00:1::").value()));
}

}  // namespace
}  // namespace mrc::fabric
