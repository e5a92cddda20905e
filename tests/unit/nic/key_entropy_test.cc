// Keys of registered memory, as many as a stranger could see: nothing in them tells the next one.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "device_fixture.h"

namespace mrc::nic::test {
namespace {

constexpr unsigned kKeys = 1'000'000;
constexpr unsigned kCells = 256;
// Chi squared of 255 degrees of freedom: 1e-9 of the fair generators are beyond it (mean 255, one
// standard deviation 23).
constexpr double kBeyond = 413;

class KeyEntropy : public LoopTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    std::array<std::byte, 64> memory{};
    MemoryKeys given;
    keys_.reserve(kKeys);
    while (keys_.size() < kKeys) {
      ASSERT_EQ(a.device->register_memory(a.domain, memory.data(), memory.size(), 0x1000, true,
                                          true, given),
                0);
      keys_.push_back(given.remote);
      ASSERT_EQ(a.device->deregister_memory(given), 0);
    }
  }

  std::vector<std::uint32_t> keys_;
};

double chi_squared(unsigned samples, const std::function<unsigned(unsigned)>& cell_of) {
  std::array<unsigned, kCells> counts{};
  for (unsigned i = 0; i < samples; ++i)
    ++counts[cell_of(i)];
  const double expected = static_cast<double>(samples) / kCells;
  double sum = 0;
  for (const unsigned count : counts)
    sum += (count - expected) * (count - expected) / expected;
  return sum;
}

TEST_F(KeyEntropy, NothingTellsTheNext) {
  // Any 8 bits side by side.
  for (unsigned shift = 0; shift <= 24; shift += 4) {
    const auto byte = [&](unsigned i) { return (keys_[i] >> shift) & 0xFFU; };
    EXPECT_LT(chi_squared(kKeys, byte), kBeyond) << "bits from " << shift;
  }
  // Four bits of a key and the same four of the one behind it; pairs do not overlap.
  for (unsigned shift = 0; shift < 32; shift += 4) {
    const auto pair = [&](unsigned i) {
      const auto nibble = [shift](std::uint32_t key) { return (key >> shift) & 0xFU; };
      return nibble(keys_[2 * i]) << 4 | nibble(keys_[2 * i + 1]);
    };
    EXPECT_LT(chi_squared(kKeys / 2, pair), kBeyond) << "bits from " << shift;
    if (shift > 24) continue;
    const auto step = [&](unsigned i) {
      return ((keys_[2 * i + 1] - keys_[2 * i]) >> shift) & 0xFFU;
    };
    EXPECT_LT(chi_squared(kKeys / 2, step), kBeyond) << "steps from " << shift;
  }
}

}  // namespace
}  // namespace mrc::nic::test
