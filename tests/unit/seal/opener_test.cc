#include "seal/opener.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "unit/seal/seal_fixture.h"

namespace mrc::seal {
namespace {

using wire::test::hex;

class OpenerTest : public testing::Test {
 protected:
  Sealer sealer_{test::sample_ring(), test::sample_flow()};
  Opener opener_{test::sample_ring(), test::host(2)};
};

// --- What is opened ---

void expect_round_trips(const wire::Dialect& dialect, Suite suite) {
  Sealer sealer(test::sample_ring(), test::sample_flow(), {.suite = suite});
  Opener opener(test::sample_ring(), test::host(2));
  wire::test::Random random(5);
  for (const wire::Opcode opcode : wire::test::kAllOpcodes) {
    for (int i = 0; i < 40; ++i) {
      const std::uint32_t length = wire::test::random_payload_length(random, opcode);
      const test::Plain plain(wire::test::random_packet(random, opcode, length),
                              wire::test::numbered_bytes(length), dialect);
      const test::Opened opened = test::open(opener, test::seal(sealer, plain));
      ASSERT_EQ(opened.result, OpenResult::kOpened);
      ASSERT_EQ(opened.transport, plain.whole);
      wire::Packet packet;
      std::span<const std::byte> payload;
      wire::Packet expected;
      const DropReason drop = wire::parse_transport(plain.whole, expected, payload, dialect);
      EXPECT_EQ(wire::parse_transport(opened.transport, packet, payload, dialect), drop);
      EXPECT_EQ(packet, expected);
    }
  }
}

TEST(OpenerRoundTrip, EveryPacketInEveryDialect) {
  for (const Suite suite : test::kAllSuites) {
    expect_round_trips(wire::kOpenMrc, suite);
    expect_round_trips(wire::kCard, suite);
    for (const wire::DialectField& field : wire::dialect_fields()) {
      wire::Dialect dialect = wire::kOpenMrc;
      const bool named = !field.choices.empty();
      field.set(dialect, named ? field.choices.back().value : field.max);
      expect_round_trips(dialect, suite);
    }
  }
}

TEST_F(OpenerTest, OpensPacketsWithoutPayload) {
  const test::Plain empty = test::sample_write(0);
  EXPECT_EQ(test::open(opener_, test::seal(sealer_, empty)).transport, empty.whole);
}

TEST_F(OpenerTest, LeavesPlainPacketsAlone) {
  for (const wire::Opcode opcode : wire::test::kAllOpcodes) {
    test::Bytes bytes = test::sample(opcode, wire::is_write(opcode) ? 8 : 0).whole;
    const test::Bytes before = bytes;
    std::span<std::byte> transport;
    EXPECT_EQ(opener_.open(test::host(1), bytes, Extent::kWhole, transport), OpenResult::kPlain);
    EXPECT_TRUE(transport.empty());
    EXPECT_EQ(bytes, before);
  }
}

// --- What is refused ---

// Nothing but the very bytes is opened, and what was refused leaves no trace: the packet itself
// opens afterwards.
void expect_every_flip_refused(const test::Plain& plain, Suite suite) {
  Sealer sealer(test::sample_ring(), test::sample_flow(), {.suite = suite});
  Opener opener(test::sample_ring(), test::host(2));
  // So that the chain is known and the window in use.
  ASSERT_EQ(test::result_of(opener, test::seal(sealer, test::sample_ack())), OpenResult::kOpened);
  const test::Bytes sealed = test::seal(sealer, plain);
  for (std::size_t bit = 0; bit < sealed.size() * 8; ++bit) {
    test::Bytes flipped = sealed;
    flipped[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    const test::Opened opened = test::open(opener, flipped);
    ASSERT_NE(opened.result, OpenResult::kOpened) << bit;
    ASSERT_TRUE(opened.transport.empty());
    const std::size_t end = clear_length(sealed) + kSealHeaderLength;
    ASSERT_EQ(opened.result == OpenResult::kBadTag, bit / 8 >= end)
        << bit << ' ' << open_result_name(opened.result);
  }
  EXPECT_EQ(opener.chains(), 1u);
  EXPECT_EQ(test::open(opener, sealed).transport, plain.whole);
}

TEST(OpenerRefuses, EveryBitFlip) {
  for (const Suite suite : test::kAllSuites) {
    for (const wire::Opcode opcode : wire::test::kAllOpcodes)
      expect_every_flip_refused(test::sample(opcode, wire::is_write(opcode) ? 21 : 0), suite);
  }
}

TEST_F(OpenerTest, RefusesEveryCutAndEveryAddition) {
  const test::Bytes sealed = test::seal(sealer_, test::sample_write(20));
  for (std::size_t length = 0; length < sealed.size(); ++length) {
    const test::Bytes cut(sealed.begin(), sealed.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_NE(test::result_of(opener_, cut), OpenResult::kOpened) << length;
  }
  test::Bytes longer = sealed;
  longer.emplace_back();
  EXPECT_EQ(test::result_of(opener_, longer), OpenResult::kBadTag);
  EXPECT_EQ(opener_.chains(), 0u);
  EXPECT_EQ(test::result_of(opener_, sealed), OpenResult::kOpened);
}

TEST_F(OpenerTest, RefusesOtherSendersAndReceivers) {
  const test::Bytes sealed = test::seal(sealer_, test::sample_write());
  EXPECT_EQ(test::result_of(opener_, sealed, test::host(3)), OpenResult::kBadHeaderTag);
  Opener other(test::sample_ring(), test::host(3));
  EXPECT_EQ(test::result_of(other, sealed), OpenResult::kBadHeaderTag);
  // Sent back to where it came from.
  Opener self(test::sample_ring(), test::host(1));
  EXPECT_EQ(test::result_of(self, sealed, test::host(2)), OpenResult::kBadHeaderTag);
  // The same of what a trimming switch could have made of it.
  EXPECT_EQ(test::result_of(other, sealed, test::host(1), Extent::kTrimmed),
            OpenResult::kBadHeaderTag);
}

TEST_F(OpenerTest, RefusesKeysItDoesNotHave) {
  Sealer by_other_number(test::ring_of({test::sample_key(1)}), test::sample_flow());
  EXPECT_EQ(test::result_of(opener_, test::seal(by_other_number, test::sample_ack())),
            OpenResult::kUnknownKey);
  Sealer by_other_secret(test::ring_of({test::sample_key(0, 9)}), test::sample_flow());
  EXPECT_EQ(test::result_of(opener_, test::seal(by_other_secret, test::sample_ack())),
            OpenResult::kBadHeaderTag);
  EXPECT_EQ(opener_.chains(), 0u);
}

TEST_F(OpenerTest, RefusesOtherVersions) {
  const test::Bytes sealed = test::seal(sealer_, test::sample_ack());
  for (std::uint8_t version = 1; version < 16; ++version) {
    test::Bytes other = sealed;
    set_transport_version(other, version);
    if (version == kSealedVersion) continue;
    EXPECT_EQ(test::result_of(opener_, other), OpenResult::kMalformed);
  }
}

TEST(OpenResults, HaveNames) {
  for (std::size_t i = 0; i < kOpenResultCount; ++i)
    EXPECT_STRNE(open_result_name(static_cast<OpenResult>(i)), "unknown");
}

// --- Replays ---

TEST_F(OpenerTest, OpensEveryPacketOnce) {
  const test::Bytes a = test::seal(sealer_, test::sample_write());
  const test::Bytes b = test::seal(sealer_, test::sample_ack());
  EXPECT_EQ(test::result_of(opener_, a), OpenResult::kOpened);
  EXPECT_EQ(test::result_of(opener_, a), OpenResult::kReplayed);
  EXPECT_EQ(test::result_of(opener_, b), OpenResult::kOpened);
  EXPECT_EQ(test::result_of(opener_, b), OpenResult::kReplayed);
  EXPECT_EQ(test::result_of(opener_, a), OpenResult::kReplayed);
}

TEST_F(OpenerTest, TakesSixtyThousandPacketsInAnyOrder) {
  constexpr std::size_t kCount = 60'000;
  std::vector<test::Bytes> sealed;
  const test::Plain plain = test::sample_ack();
  for (std::size_t i = 0; i < kCount; ++i)
    sealed.push_back(test::seal(sealer_, plain));
  std::shuffle(sealed.begin(), sealed.end(), std::mt19937_64(3));
  for (const test::Bytes& datagram : sealed)
    ASSERT_EQ(test::result_of(opener_, datagram), OpenResult::kOpened);
  for (const test::Bytes& datagram : sealed)
    ASSERT_EQ(test::result_of(opener_, datagram), OpenResult::kReplayed);
}

TEST(OpenerReplay, RefusesWhatIsOlderThanItsWindow) {
  Sealer sealer(test::sample_ring(), test::sample_flow());
  Opener opener(test::sample_ring(), test::host(2));
  const test::Bytes first = test::seal(sealer, test::sample_ack());
  const test::Bytes second = test::seal(sealer, test::sample_ack());
  for (std::uint64_t i = 2; i < ReplayWindow::kSize; ++i)
    std::ignore = test::seal(sealer, test::sample_ack());
  ASSERT_EQ(test::result_of(opener, test::seal(sealer, test::sample_ack())), OpenResult::kOpened);
  EXPECT_EQ(test::result_of(opener, first), OpenResult::kTooOld);
  EXPECT_EQ(test::result_of(opener, second), OpenResult::kOpened);
}

TEST(OpenerReplay, ChainsOfOneSenderAreKnownApart) {
  Opener opener(test::sample_ring(), test::host(2));
  for (int i = 0; i < 3; ++i) {
    Sealer sealer(test::sample_ring(), test::sample_flow());
    const test::Bytes sealed = test::seal(sealer, test::sample_ack());
    EXPECT_EQ(test::result_of(opener, sealed), OpenResult::kOpened);
    EXPECT_EQ(test::result_of(opener, sealed), OpenResult::kReplayed);
  }
  EXPECT_EQ(opener.chains(), 3u);
}

TEST(OpenerReplay, AChainThatMadeRoomGoesOnWhereItWas) {
  Opener opener(test::sample_ring(), test::host(2));
  Sealer early(test::sample_ring(), test::sample_flow());
  const test::Bytes a = test::seal(early, test::sample_ack());
  const test::Bytes b = test::seal(early, test::sample_ack());
  const test::Bytes c = test::seal(early, test::sample_ack());
  ASSERT_EQ(test::result_of(opener, b), OpenResult::kOpened);
  for (std::size_t i = 0; i < ChainTable::kMostChains; ++i) {
    Sealer other(test::sample_ring(), test::sample_flow());
    ASSERT_EQ(test::result_of(opener, test::seal(other, test::sample_ack())), OpenResult::kOpened);
  }
  EXPECT_EQ(opener.chains(), ChainTable::kMostChains);
  EXPECT_EQ(test::result_of(opener, b), OpenResult::kTooOld);
  EXPECT_EQ(test::result_of(opener, a), OpenResult::kTooOld);
  EXPECT_EQ(test::result_of(opener, c), OpenResult::kOpened);
  EXPECT_EQ(test::result_of(opener, b), OpenResult::kReplayed);
}

// --- Epochs ---

TEST(OpenerEpochs, TheKeyChangesOnTheWayAndReorderingDoesNotMatter) {
  constexpr std::uint64_t kChange = std::uint64_t{1} << kEpochBits;
  for (const Suite suite : test::kAllSuites) {
    for (const std::uint64_t change : {kChange, 2 * kChange, 9 * kChange}) {
      Sealer sealer(test::sample_ring(), test::sample_flow(),
                    {.suite = suite, .first_number = change - 50});
      Opener opener(test::sample_ring(), test::host(2));
      std::vector<test::Bytes> sealed;
      for (int i = 0; i < 100; ++i)
        sealed.push_back(test::seal(sealer, test::sample_write()));
      std::shuffle(sealed.begin(), sealed.end(), std::mt19937_64(change));
      for (const test::Bytes& datagram : sealed)
        ASSERT_EQ(test::open(opener, datagram).transport, test::sample_write().whole);
    }
  }
}

// --- Trimmed packets ---

TEST(OpenerTrimmed, OpensWhatASwitchLeft) {
  for (const wire::Opcode opcode : wire::test::kAllOpcodes) {
    if (!wire::is_write(opcode)) continue;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const test::Plain plain = test::sample(opcode, 40, seed);
      Sealer sealer(test::sample_ring(), test::sample_flow());
      const test::Bytes sealed = test::seal(sealer, plain);
      const std::size_t clear = clear_length(sealed);
      for (std::size_t cut = 0; cut <= sealed.size(); ++cut) {
        Opener opener(test::sample_ring(), test::host(2));
        const test::Bytes left(sealed.begin(), sealed.begin() + static_cast<std::ptrdiff_t>(cut));
        const test::Opened opened = test::open(opener, left, test::host(1), Extent::kTrimmed);
        if (cut < clear + kSealHeaderLength) {
          ASSERT_EQ(opened.result, OpenResult::kMalformed) << cut;
          continue;
        }
        ASSERT_EQ(opened.result, OpenResult::kOpened) << cut;
        ASSERT_EQ(opened.transport, test::Bytes(plain.whole.begin(), plain.whole.begin() + clear));
        wire::Packet packet;
        EXPECT_EQ(wire::parse_trimmed_transport(opened.transport, packet), DropReason::kNone);
      }
    }
  }
}

TEST_F(OpenerTest, ATrimmedPacketIsUsedUpLikeAWholeOne) {
  const test::Bytes a = test::seal(sealer_, test::sample_write());
  EXPECT_EQ(test::result_of(opener_, a, test::host(1), Extent::kTrimmed), OpenResult::kOpened);
  EXPECT_EQ(test::result_of(opener_, a, test::host(1), Extent::kTrimmed), OpenResult::kReplayed);
  EXPECT_EQ(test::result_of(opener_, a), OpenResult::kReplayed);
  const test::Bytes b = test::seal(sealer_, test::sample_write());
  EXPECT_EQ(test::result_of(opener_, b), OpenResult::kOpened);
  EXPECT_EQ(test::result_of(opener_, b, test::host(1), Extent::kTrimmed), OpenResult::kReplayed);
}

TEST_F(OpenerTest, RefusesTrimmedPacketsWithAFlippedBit) {
  const test::Bytes sealed = test::seal(sealer_, test::sample_write());
  const std::size_t covered = clear_length(sealed) + kSealHeaderLength;
  for (std::size_t bit = 0; bit < covered * 8; ++bit) {
    test::Bytes flipped = sealed;
    flipped[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_NE(test::result_of(opener_, flipped, test::host(1), Extent::kTrimmed),
              OpenResult::kOpened)
        << bit;
  }
  EXPECT_EQ(opener_.chains(), 0u);
}

TEST_F(OpenerTest, OnlyDataIsEverTrimmed) {
  for (const wire::Opcode opcode : wire::test::kAllOpcodes) {
    if (wire::is_write(opcode)) continue;
    const test::Bytes sealed = test::seal(sealer_, test::sample(opcode, 0));
    EXPECT_EQ(test::result_of(opener_, sealed, test::host(1), Extent::kTrimmed),
              OpenResult::kMalformed);
  }
}

// --- Rotation ---

TEST(OpenerRotation, NoPacketIsLostAtAnyStep) {
  const ClusterKey old_key = test::sample_key(1);
  const ClusterKey new_key = test::sample_key(2);
  const std::vector<ClusterKeys> steps = {
      {old_key}, {old_key, new_key}, {new_key, old_key}, {new_key}};
  // Each end is one step ahead of or behind the other, or level with it.
  for (std::size_t sends = 0; sends < steps.size(); ++sends) {
    Sealer sealer(test::ring_of(steps[sends]), test::sample_flow());
    for (std::size_t opens = sends == 0 ? 0 : sends - 1; opens < steps.size(); ++opens) {
      if (opens > sends + 1) break;
      Opener opener(test::ring_of(steps[opens]), test::host(2));
      EXPECT_EQ(test::result_of(opener, test::seal(sealer, test::sample_ack())),
                OpenResult::kOpened)
          << sends << " " << opens;
    }
  }
}

TEST(OpenerRotation, WhatWasSeenStaysSeen) {
  const KeyRingRef first = test::ring_of({test::sample_key(1)});
  const KeyRingRef second = test::ring_of({test::sample_key(2)});
  Sealer sealer(first, test::sample_flow());
  Opener opener(first, test::host(2));
  const test::Bytes a = test::seal(sealer, test::sample_ack());
  const test::Bytes b = test::seal(sealer, test::sample_ack());
  EXPECT_EQ(test::result_of(opener, a), OpenResult::kOpened);
  opener.set_ring(second);
  EXPECT_EQ(test::result_of(opener, a), OpenResult::kUnknownKey);
  opener.set_ring(first);
  EXPECT_EQ(test::result_of(opener, a), OpenResult::kReplayed);
  EXPECT_EQ(test::result_of(opener, b), OpenResult::kOpened);
}

TEST(OpenerRotation, ANumberMayComeBackWithAnotherSecret) {
  const KeyRingRef first = test::ring_of({test::sample_key(1)});
  const KeyRingRef second = test::ring_of({test::sample_key(1, 5)});
  Sealer sealer(first, test::sample_flow());
  Opener opener(first, test::host(2));
  const test::Bytes old = test::seal(sealer, test::sample_ack());
  EXPECT_EQ(test::result_of(opener, old), OpenResult::kOpened);
  sealer.set_ring(second);
  opener.set_ring(second);
  EXPECT_EQ(test::result_of(opener, test::seal(sealer, test::sample_ack())), OpenResult::kOpened);
  EXPECT_EQ(test::result_of(opener, old), OpenResult::kBadHeaderTag);
}

// --- Captures ---

// Sealed by the first version, and opened by an implementation in another language: what is on the
// wire must not change without another number of the format.
TEST(OpenCaptured, OpensWhatWasSealedOnce) {
  constexpr struct {
    const char* plain;
    const char* sealed;
  } kSamples[] = {
      {"ca20d1b400f14b0901f461008010ef008e61bd8674b6331b40991e650000000a00070e151c232a31383f0000",
       "ca25d1b400f14b0901f461008010ef0011000000b56fd39ec9c43bcd0000000000000007381f9b8cf159f3dd"
       "a4da71a61b5c60e52cc482460eadaafe063b4e7629b0463c4337f949ed51fb08ba1d3e2a9d0355a3007c3067"},
      {"ca20d1b400f14b0901f461008010ef008e61bd8674b6331b40991e650000000a00070e151c232a31383f0000",
       "ca25d1b400f14b0901f461008010ef0011000000a60ae34b209738c9000000000040000558086c81d8fefb09"
       "0847d66e1f47e8df69de3973bb7a5882281c1d1a788cfcc0d60d898a422ffa0d8c8f9f8a7e7fb4556fad4c13"},
      {"ca20d1b400f14b0901f461008010ef008e61bd8674b6331b40991e650000000a00070e151c232a31383f0000",
       "ca25d1b400f14b0901f461008010ef001200000094b5febd3ee273310000000000000007830d177b5c1e8add"
       "00839690290df63e0de0a035491fb1bfa38983c6082abd0965285abacf66836fa00613eb9fd833e41b7fa784"},
      {"ca20d1b400f14b0901f461008010ef008e61bd8674b6331b40991e650000000a00070e151c232a31383f0000",
       "ca25d1b400f14b0901f461008010ef001200000083bfa1099a5beba50000000000400005194696570d67e5ad"
       "d1d9ecaf5fb5d03a8693cf88da95337616a27e429cfd11fd185af92de993748782b60a3e4f9978c5cf2ae8ca"},
      {"dc006849005bd1b400f14b090040ef0074b6331b1e655a63000d03dc09c108ba797efaca4dbd97e3cbe86fcf"
       "c4ecc15b",
       "dc056849005bd1b400f14b0911000000ececdfaa71d0343100000000000000004872b2851aebfe513092315c"
       "5586373da9b2430caa9221251e96baa9c26288ba8b34139a731b460aab5fa3682190deaed52f223a86f17c8b"
       "75a4ffdf"}};
  for (const auto& [plain, sealed] : kSamples) {
    test::Bytes datagram = hex(sealed);
    std::span<std::byte> transport;
    EXPECT_EQ(open_captured(*test::sample_ring(), test::sample_flow(), datagram, Extent::kWhole,
                            transport),
              OpenResult::kOpened);
    EXPECT_EQ(wire::test::to_hex(transport), plain);
  }
}

TEST(OpenCaptured, OpensAsOftenAsOneLikes) {
  Sealer sealer(test::sample_ring(), test::sample_flow());
  const test::Plain plain = test::sample_write();
  const test::Bytes sealed = test::seal(sealer, plain);
  for (int i = 0; i < 3; ++i) {
    test::Bytes copy = sealed;
    std::span<std::byte> transport;
    EXPECT_EQ(
        open_captured(*test::sample_ring(), test::sample_flow(), copy, Extent::kWhole, transport),
        OpenResult::kOpened);
    EXPECT_TRUE(
        std::equal(transport.begin(), transport.end(), plain.whole.begin(), plain.whole.end()));
    copy = sealed;
    EXPECT_EQ(
        open_captured(*test::sample_ring(), test::sample_flow(), copy, Extent::kTrimmed, transport),
        OpenResult::kOpened);
    EXPECT_EQ(transport.size(), clear_length(sealed));
    copy = sealed;
    copy.back() ^= std::byte{1};
    EXPECT_EQ(
        open_captured(*test::sample_ring(), test::sample_flow(), copy, Extent::kWhole, transport),
        OpenResult::kBadTag);
  }
}

}  // namespace
}  // namespace mrc::seal
