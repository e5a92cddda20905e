// What sealing costs in a simulation: bytes on the wire, and the time of hosts.
#include <gtest/gtest.h>

#include "sim/simulation.h"

namespace mrc::sim {
namespace {

constexpr std::uint64_t kBytes = 1 << 20;
constexpr Time kPackets = kBytes / 4'096;
constexpr Time kPerPacketPs = 350'000 + 4'096 * 224;  // 1,268 ns, as docs/performance.md has it

// All hosts of one rack send to the first.
SimConfig incast(unsigned senders) {
  SimConfig config;
  config.topology = {.planes = 2, .hosts = 8, .t0 = 4, .t1 = 2};
  config.workload.name = "incast";
  config.workload.bytes = kBytes;
  config.workload.senders = senders;
  config.verify = true;
  return config;
}

SimConfig sealed(SimConfig config) {
  config.mrc.seal.on = true;
  return config;
}

Time end_of(const SimConfig& config) {
  const SimResult result = Simulation(config).run();
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.bytes_wrong, 0U);
  return result.finished_at;
}

TEST(SealCost, PacketsAreLongerByHeaderAndTag) {
  const SimConfig plain = incast(1);
  EXPECT_EQ(full_packet_bytes(sealed(plain)) - full_packet_bytes(plain), 28U + 16 - 4);
  EXPECT_EQ(trimmed_packet_bytes(sealed(plain)) - trimmed_packet_bytes(plain), 28U);
}

TEST(SealCost, OneProcessorIsSlowerThanThePorts) {
  const Time plain = end_of(incast(1));
  ASSERT_LT(plain, kPackets * kPerPacketPs);
  const Time one = end_of(sealed(incast(1)));
  EXPECT_GE(one, kPackets * kPerPacketPs);
  // Answers and the last round trip come on top.
  EXPECT_LE(one, 5 * kPackets * kPerPacketPs / 4);
  SimConfig four = sealed(incast(1));
  four.mrc.seal.processors = 4;
  EXPECT_GE(end_of(four), kPackets * kPerPacketPs / 4);
  EXPECT_LT(end_of(four), one / 2);
}

TEST(SealCost, AReceiverOpensWhatAllSend) {
  EXPECT_GE(end_of(sealed(incast(3))), 3 * kPackets * kPerPacketPs);
}

TEST(SealCost, WithoutAPriceOnlyTheBytesCount) {
  SimConfig free = sealed(incast(1));
  free.mrc.seal.packet_ns = 0;
  free.mrc.seal.byte_ps = 0;
  const Time plain = end_of(incast(1));
  EXPECT_GT(end_of(free), plain);
  EXPECT_LT(end_of(free), plain + plain / 20);  // 40 bytes of 4,238 are 1 %
}

}  // namespace
}  // namespace mrc::sim
