#include "core/memory_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "base/prng.h"
#include "core/work.h"

namespace mrc::core {
namespace {

constexpr std::uint64_t kLastByte = std::numeric_limits<std::uint64_t>::max();
constexpr ProtectionDomain kOurs{7};
constexpr ProtectionDomain kForeign{8};

// Hands out the given keys, then repeats the last one.
class ScriptedKeys : public RandomSource {
 public:
  ScriptedKeys(std::initializer_list<std::uint32_t> keys) : keys_(keys) {}
  std::uint32_t next32() override {
    ++draws_;
    const std::uint32_t key = keys_.front();
    if (keys_.size() > 1) keys_.pop_front();
    return key;
  }
  unsigned draws() const { return draws_; }

 private:
  std::deque<std::uint32_t> keys_;
  unsigned draws_ = 0;
};

class PseudoRandomKeys : public RandomSource {
 public:
  explicit PseudoRandomKeys(std::uint64_t seed, std::uint32_t mask = 0xFFFF'FFFF)
      : prng_(seed), mask_(mask) {}
  std::uint32_t next32() override { return prng_.next32() & mask_; }

 private:
  Prng prng_;
  std::uint32_t mask_;
};

MemoryRegion writable(std::uint64_t address, std::uint64_t length) {
  return {.address = address, .length = length, .domain = kOurs, .remote_write = true};
}

Rkey must_add(MemoryTable& table, const MemoryRegion& region, RandomSource& random) {
  const Result<Rkey> key = table.add(region, random);
  EXPECT_TRUE(key.ok()) << key.status().what();
  return key.value();
}

struct EdgeCase {
  const char* name;
  ProtectionDomain domain;
  Rkey key;
  std::uint64_t address;
  std::uint32_t length;
  bool allowed;
};

constexpr Rkey kKey{0x8000'0001};
constexpr Rkey kReadOnlyKey{0x0000'0000};
constexpr Rkey kStaleKey{0xFFFF'FFFD};
constexpr Rkey kTopKey{0x1234'5678};
constexpr Rkey kEmptyKey{0x7FFF'FFFF};
constexpr Rkey kUnknownKey{0x8000'0000};

// One region [4096, 8192), the same without the right, a removed one, the last 256 bytes of the
// address space and a region of length 0.
const EdgeCase kEdges[] = {
    {"WholeRegion", kOurs, kKey, 4096, 4096, true},
    {"FirstByte", kOurs, kKey, 4096, 1, true},
    {"LastByte", kOurs, kKey, 8191, 1, true},
    {"Inside", kOurs, kKey, 5000, 64, true},
    {"WrongKey", kOurs, kUnknownKey, 4096, 1, false},
    {"KeyOfAnotherRegion", kOurs, kTopKey, 4096, 1, false},
    {"StaleKey", kOurs, kStaleKey, 4096, 1, false},
    {"ForeignDomain", kForeign, kKey, 4096, 1, false},
    {"MissingRight", kOurs, kReadOnlyKey, 4096, 1, false},
    {"OneByteBeforeTheStart", kOurs, kKey, 4095, 1, false},
    {"StraddlesTheStart", kOurs, kKey, 4095, 2, false},
    {"FirstByteBehindTheEnd", kOurs, kKey, 8192, 1, false},
    {"StraddlesTheEnd", kOurs, kKey, 8191, 2, false},
    {"OneByteTooLong", kOurs, kKey, 4096, 4097, false},
    {"LongestLength", kOurs, kKey, 4096, 0xFFFF'FFFF, false},
    {"EndWrapsTo2To64", kOurs, kKey, kLastByte, 1, false},
    {"EndWrapsIntoTheRegion", kOurs, kKey, kLastByte - 10, 5000, false},
    {"AddressZero", kOurs, kKey, 0, 1, false},
    {"LengthZeroWrongKey", kOurs, kUnknownKey, 4096, 0, false},
    {"LengthZeroForeignDomain", kForeign, kKey, 4096, 0, false},
    {"LengthZeroAtTheEnd", kOurs, kKey, 8192, 0, true},
    {"LengthZeroOutside", kOurs, kKey, 9999, 0, false},
    {"TopWhole", kOurs, kTopKey, kLastByte - 255, 256, true},
    {"TopLastByte", kOurs, kTopKey, kLastByte, 1, true},
    {"TopOneBeforeTheStart", kOurs, kTopKey, kLastByte - 256, 1, false},
    {"TopEndWraps", kOurs, kTopKey, kLastByte, 2, false},
    {"TopEndWrapsToStart", kOurs, kTopKey, kLastByte - 255, 257, false},
    {"TopWrapsFar", kOurs, kTopKey, kLastByte - 255, 0xFFFF'FFFF, false},
    {"TopAddressAfterWrap", kOurs, kTopKey, 0, 1, false},
    {"EmptyRegionFirstByte", kOurs, kEmptyKey, 4096, 1, false},
    {"EmptyRegionLengthZero", kOurs, kEmptyKey, 4096, 0, true},
};

TEST(MemoryTable, TakesAKeyThatAnotherTableDrew) {
  MemoryTable table(2);
  const MemoryRegion region{
      .address = 0x1000, .length = 64, .domain = ProtectionDomain{1}, .remote_write = true};
  EXPECT_EQ(table.add(region, Rkey{7}).value(), Rkey{7});
  EXPECT_TRUE(table.allows_write(ProtectionDomain{1}, Rkey{7}, 0x1000, 64));
  EXPECT_EQ(table.add(region, Rkey{7}).status().code(), ErrorCode::kAlreadyExists);
  EXPECT_EQ(table.add(region, kSendKey).status().code(), ErrorCode::kAlreadyExists);
  ASSERT_TRUE(table.add(region, Rkey{8}).ok());
  EXPECT_EQ(table.add(region, Rkey{9}).status().code(), ErrorCode::kNoSpace);
}

class MemoryTableEdges : public testing::TestWithParam<EdgeCase> {};

TEST_P(MemoryTableEdges, AreDecidedExactly) {
  MemoryTable table(8);
  ScriptedKeys keys{static_cast<std::uint32_t>(kKey), static_cast<std::uint32_t>(kReadOnlyKey),
                    static_cast<std::uint32_t>(kStaleKey), static_cast<std::uint32_t>(kTopKey),
                    static_cast<std::uint32_t>(kEmptyKey)};
  must_add(table, writable(4096, 4096), keys);
  must_add(table, {.address = 4096, .length = 4096, .domain = kOurs, .remote_write = false}, keys);
  must_add(table, writable(4096, 4096), keys);
  must_add(table, writable(kLastByte - 255, 256), keys);
  must_add(table, writable(4096, 0), keys);
  ASSERT_TRUE(table.remove(kStaleKey).ok());

  const EdgeCase& edge = GetParam();
  EXPECT_EQ(table.allows_write(edge.domain, edge.key, edge.address, edge.length), edge.allowed);
}

INSTANTIATE_TEST_SUITE_P(All, MemoryTableEdges, testing::ValuesIn(kEdges),
                         [](const auto& edge) { return edge.param.name; });

TEST(MemoryTable, RefusesARegionThatWrapsAroundTheAddressSpace) {
  MemoryTable table(4);
  PseudoRandomKeys keys(1);
  for (const MemoryRegion& region : {writable(kLastByte, 2), writable(kLastByte - 4095, 4097),
                                     writable(2, kLastByte), writable(kLastByte, kLastByte)}) {
    EXPECT_EQ(table.add(region, keys).status().code(), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(table.size(), 0U);
}

TEST(MemoryTable, TakesARegionThatEndsWithTheAddressSpace) {
  MemoryTable table(4);
  PseudoRandomKeys keys(1);
  EXPECT_TRUE(table.add(writable(kLastByte, 1), keys).ok());
  EXPECT_TRUE(table.add(writable(1, kLastByte), keys).ok());
  EXPECT_TRUE(table.add(writable(kLastByte, 0), keys).ok());
}

TEST(MemoryTable, RefusesMoreRegionsThanItsCapacity) {
  MemoryTable table(3);
  PseudoRandomKeys keys(2);
  std::vector<Rkey> live;
  for (int i = 0; i < 3; ++i)
    live.push_back(must_add(table, writable(0, 1), keys));
  EXPECT_EQ(table.add(writable(0, 1), keys).status().code(), ErrorCode::kNoSpace);
  ASSERT_TRUE(table.remove(live[1]).ok());
  EXPECT_TRUE(table.add(writable(0, 1), keys).ok());
  EXPECT_EQ(table.size(), 3U);
}

TEST(MemoryTable, WithoutCapacityRefusesEverything) {
  MemoryTable table(0);
  PseudoRandomKeys keys(3);
  EXPECT_EQ(table.add(writable(0, 1), keys).status().code(), ErrorCode::kNoSpace);
  EXPECT_FALSE(table.allows_write(kOurs, Rkey{0}, 0, 1));
  EXPECT_EQ(table.remove(Rkey{0}).code(), ErrorCode::kNotFound);
}

TEST(MemoryTable, NeverGivesARegionAKeyThatMarksSends) {
  MemoryTable table(4);
  ScriptedKeys keys{static_cast<std::uint32_t>(kSendKey),
                    static_cast<std::uint32_t>(kSendImmediateKey), 9};
  EXPECT_EQ(must_add(table, writable(0, 16), keys), Rkey{9});
  EXPECT_FALSE(table.allows_write(kOurs, kSendKey, 0, 16));
}

TEST(MemoryTable, DrawsAgainWhenAKeyIsInUse) {
  MemoryTable table(4);
  ScriptedKeys keys{5, 5, 5, 9};
  EXPECT_EQ(must_add(table, writable(0, 1), keys), Rkey{5});
  EXPECT_EQ(must_add(table, writable(0, 1), keys), Rkey{9});
  EXPECT_EQ(keys.draws(), 4U);
}

TEST(MemoryTable, GivesUpOnAGeneratorThatRepeatsItself) {
  MemoryTable table(4);
  ScriptedKeys keys{5};
  must_add(table, writable(0, 1), keys);
  EXPECT_EQ(table.add(writable(0, 1), keys).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(keys.draws(), 1 + MemoryTable::kMaxKeyDraws);
  EXPECT_EQ(table.size(), 1U);
}

TEST(MemoryTable, RemovesAKeyOnlyOnce) {
  MemoryTable table(4);
  ScriptedKeys keys{5};
  must_add(table, writable(0, 16), keys);
  EXPECT_TRUE(table.remove(Rkey{5}).ok());
  EXPECT_EQ(table.remove(Rkey{5}).code(), ErrorCode::kNotFound);
  EXPECT_EQ(table.size(), 0U);
  EXPECT_FALSE(table.allows_write(kOurs, Rkey{5}, 0, 16));
}

TEST(MemoryTable, UsesEveryBitOfTheKey) {
  MemoryTable table(64);
  for (unsigned bit = 0; bit < 32; ++bit) {
    ScriptedKeys keys{std::uint32_t{1} << bit};
    must_add(table, writable(bit * 100, 100), keys);
  }
  for (unsigned bit = 0; bit < 32; ++bit) {
    const Rkey key{std::uint32_t{1} << bit};
    EXPECT_TRUE(table.allows_write(kOurs, key, bit * 100, 100)) << bit;
    EXPECT_FALSE(table.allows_write(kOurs, key, bit * 100, 101)) << bit;
  }
}

// What the table must do, said in the plainest way: each byte of the write lies in the region.
class NaiveTable {
 public:
  void add(Rkey key, const MemoryRegion& region) { regions_[key] = region; }
  bool remove(Rkey key) { return regions_.erase(key) == 1; }
  std::size_t size() const { return regions_.size(); }
  bool allows_write(ProtectionDomain domain, Rkey key, std::uint64_t address,
                    std::uint32_t length) const {
    const auto found = regions_.find(key);
    if (found == regions_.end()) return false;
    const MemoryRegion& region = found->second;
    if (region.domain != domain || !region.remote_write) return false;
    if (length == 0) return address >= region.address && address - region.address <= region.length;
    for (std::uint32_t i = 0; i < length; ++i) {
      const std::uint64_t byte = address + i;
      const bool wrapped = byte < address;
      if (wrapped || byte < region.address || byte - region.address >= region.length) return false;
    }
    return true;
  }
  std::optional<Rkey> pick(Prng& prng) const {
    if (regions_.empty()) return std::nullopt;
    auto at = regions_.begin();
    std::advance(at, prng.below(static_cast<std::uint32_t>(regions_.size())));
    return at->first;
  }

 private:
  std::map<Rkey, MemoryRegion> regions_;
};

// Addresses near the two ends of the address space and of each other, where mistakes show.
std::uint64_t near_edge(Prng& prng) {
  const std::uint64_t offset = prng.below(64);
  return prng.below(2) == 0 ? offset : kLastByte - offset;
}

// Few distinct keys make long probe chains; many removals test that they stay whole.
TEST(MemoryTable, AgreesWithANaiveModelUnderRandomUse) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Prng prng(seed);
    const unsigned capacity = 1 + prng.below(24);
    const std::uint32_t key_mask = seed % 2 == 0 ? 0x3F : 0xFFFF'FFFF;
    PseudoRandomKeys keys(seed * 77, key_mask);
    MemoryTable table(capacity);
    NaiveTable model;
    for (int step = 0; step < 3000; ++step) {
      const std::uint32_t action = prng.below(8);
      const Rkey key = prng.below(4) != 0 ? model.pick(prng).value_or(Rkey{prng.next32()})
                                          : Rkey{prng.next32() & key_mask};
      if (action == 0) {
        const MemoryRegion region{.address = near_edge(prng),
                                  .length = prng.below(48),
                                  .domain = ProtectionDomain{prng.below(2)},
                                  .remote_write = prng.below(4) != 0};
        const bool wraps =
            region.length > 0 && region.address + (region.length - 1) < region.address;
        const Result<Rkey> added = table.add(region, keys);
        if (wraps || model.size() == capacity) {
          ASSERT_FALSE(added.ok());
        } else if (added.ok()) {
          model.add(added.value(), region);
        }
      } else if (action == 1) {
        ASSERT_EQ(table.remove(key).ok(), model.remove(key));
      } else {
        const ProtectionDomain domain{prng.below(2)};
        const std::uint64_t address = near_edge(prng);
        const std::uint32_t length = prng.below(50);
        ASSERT_EQ(table.allows_write(domain, key, address, length),
                  model.allows_write(domain, key, address, length))
            << "seed " << seed << " step " << step;
      }
      ASSERT_EQ(table.size(), model.size());
    }
  }
}

}  // namespace
}  // namespace mrc::core
