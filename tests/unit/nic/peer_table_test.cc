#include "nic/peer_table.h"

#include <gtest/gtest.h>

namespace mrc::nic {
namespace {

TEST(PeerTable, AHostNamesAPeerWhereItHasOne) {
  PeerTable table(8);
  const wire::IpAddress one = wire::ipv4_address(0x0A00'0001);
  const wire::IpAddress two = wire::ipv4_address(0x0A00'0002);
  EXPECT_EQ(table.only_one_of(one), Address{});
  const Address first = table.acquire({.gid = one, .process = 3}).value();
  const Address other = table.acquire({.gid = two, .process = 3}).value();
  EXPECT_EQ(table.only_one_of(one), first);
  EXPECT_EQ(table.only_one_of(two), other);
  const Address second = table.acquire({.gid = one, .process = 4}).value();
  EXPECT_EQ(table.only_one_of(one), Address{}) << "which of the two?";
  table.release(first);
  EXPECT_EQ(table.only_one_of(one), second);
}

}  // namespace
}  // namespace mrc::nic
