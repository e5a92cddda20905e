#include "nic/io/wire/source_ports.h"

#include <gtest/gtest.h>

#include <set>

namespace mrc::nic {
namespace {

TEST(SourcePorts, AnEvHasItsLowHalfWhereThatIsFree) {
  SourcePorts ports;
  EXPECT_EQ(ports.of(0x1111'2222), 0x2222);
  EXPECT_EQ(ports.of(0x1111'2223), 0x2223);
  EXPECT_EQ(ports.of(0x1111'2222), 0x2222) << "and keeps it";
}

// OCP's example of generated EVs: 8, 4 and 4 bits, all in the high half.
TEST(SourcePorts, EvsThatDifferInAnyBitHaveDifferentPorts) {
  SourcePorts ports;
  std::set<std::uint16_t> seen;
  for (std::uint32_t i = 0; i < 65'536; ++i)
    seen.insert(ports.of(i << 16));
  EXPECT_EQ(seen.size(), 65'536U);
  const std::uint16_t shared = ports.of(0xFFFF'FFFF);
  EXPECT_TRUE(seen.contains(shared)) << "there are no more";
}

// A controller may replace EVs for ever.
TEST(SourcePorts, PortsOfEvsThatWentAreThereForOthers) {
  SourcePorts ports;
  ports.of(0x1111'2222);
  for (std::uint32_t i = 0; i < 65'535; ++i)
    ports.of(i << 16 | 0x3333);
  ports.keep({0x2222});
  EXPECT_EQ(ports.of(0x1111'2222), 0x2222) << "kept";
  EXPECT_EQ(ports.of(0x7777'4444), 0x4444);
  EXPECT_NE(ports.of(0x7777'2222), 0x2222) << "is taken";
}

}  // namespace
}  // namespace mrc::nic
