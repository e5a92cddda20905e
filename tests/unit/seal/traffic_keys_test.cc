#include "seal/traffic_keys.h"

#include <gtest/gtest.h>

#include <set>

#include "unit/seal/seal_fixture.h"

namespace mrc::seal {
namespace {

// What a key makes of zeros tells keys and nonces apart.
test::Bytes stream(TrafficKeys& keys, std::uint64_t number) {
  test::Bytes out(32);
  Aead* const aead = keys.begin(number, {});
  EXPECT_TRUE(aead != nullptr && aead->add(test::Bytes(32), out.data()));
  return out;
}

test::Bytes stream(const ChainName& chain, std::uint64_t number, unsigned key = 0) {
  const KeyRingRef ring = test::ring_of({test::sample_key(key)});
  TrafficKeys keys(test::crypto(), ring->sealing_key(), chain, Aead::Direction::kSeal);
  return stream(keys, number);
}

TEST(TrafficKeys, DependOnAllThatNamesAChain) {
  const ChainName chain{.flow = test::sample_flow(), .instance = 1};
  ChainName other_suite = chain;
  other_suite.suite = Suite::kChaCha20Poly1305;
  ChainName other_source = chain;
  other_source.flow.source = test::host(3);
  ChainName other_destination = chain;
  other_destination.flow.destination = test::host(3);
  ChainName other_way = chain;
  std::swap(other_way.flow.source, other_way.flow.destination);
  ChainName other_instance = chain;
  other_instance.instance = 2;
  const std::set<test::Bytes> all = {stream(chain, 0),          stream(other_suite, 0),
                                     stream(other_source, 0),   stream(other_way, 0),
                                     stream(other_instance, 0), stream(other_destination, 0),
                                     stream(chain, 0, 1)};
  EXPECT_EQ(all.size(), 7u);
  EXPECT_EQ(stream(chain, 0), stream(chain, 0));
}

TEST(TrafficKeys, EveryNumberHasItsOwnNonceInEveryEpoch) {
  constexpr std::uint64_t kEpoch = std::uint64_t{1} << kEpochBits;
  const ChainName chain{.flow = test::sample_flow(), .instance = 1};
  const KeyRingRef ring = test::sample_ring();
  TrafficKeys keys(test::crypto(), ring->sealing_key(), chain, Aead::Direction::kSeal);
  std::set<test::Bytes> all;
  for (const std::uint64_t epoch : {0u, 1u, 2u, 3u, 1000u}) {
    for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{1}, kEpoch - 1})
      EXPECT_TRUE(all.insert(stream(keys, epoch * kEpoch + number)).second);
  }
}

TEST(TrafficKeys, OlderEpochsAreDerivedAgain) {
  constexpr std::uint64_t kEpoch = std::uint64_t{1} << kEpochBits;
  const ChainName chain{.flow = test::sample_flow(), .instance = 1};
  const KeyRingRef ring = test::sample_ring();
  TrafficKeys keys(test::crypto(), ring->sealing_key(), chain, Aead::Direction::kSeal);
  const test::Bytes first = stream(keys, 5);
  std::ignore = stream(keys, kEpoch);
  std::ignore = stream(keys, 2 * kEpoch);
  EXPECT_EQ(stream(keys, 5), first);
}

}  // namespace
}  // namespace mrc::seal
