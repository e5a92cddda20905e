#include "seal/key_ring.h"

#include <gtest/gtest.h>

#include "unit/seal/seal_fixture.h"

namespace mrc::seal {
namespace {

TEST(KeyRing, SealsWithTheFirstAndFindsBoth) {
  const KeyRingRef ring = test::ring_of({test::sample_key(4), test::sample_key(2)});
  EXPECT_EQ(ring->sealing_key().id, KeyId{4});
  EXPECT_EQ(ring->find(KeyId{2})->id, KeyId{2});
  EXPECT_EQ(ring->find(KeyId{3}), nullptr);
}

TEST(KeyRing, KeysOfOneNumberAreNotTheSame) {
  const KeyRingRef a = test::ring_of({test::sample_key(1)});
  const KeyRingRef b = test::ring_of({test::sample_key(1, 77)});
  EXPECT_NE(a->sealing_key().identity, b->sealing_key().identity);
  EXPECT_NE(a->sealing_key().header_key, b->sealing_key().header_key);
  EXPECT_EQ(a->sealing_key().identity, test::ring_of({test::sample_key(1)})->keys()[0].identity);
}

TEST(KeyRing, PrintsWhatSha256sumPrints) {
  ClusterKey zeros;
  EXPECT_EQ(fingerprint(test::crypto(), zeros), "66687aad");
}

}  // namespace
}  // namespace mrc::seal
