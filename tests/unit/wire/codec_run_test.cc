// Packets that follow on one another, as bytes.
#include <gtest/gtest.h>

#include <algorithm>

#include "unit/wire/wire_samples.h"
#include "wire/codec.h"

namespace mrc::wire {
namespace {

using test::Bytes;
using test::numbered_bytes;
using test::Random;
using test::transport_bytes;

constexpr std::uint32_t kPayload = 64;

struct Neighbours {
  explicit Neighbours(Random& random)
      : first(test::random_packet(random, Opcode::kWriteMiddle, kPayload)), second(first) {
    move_on(second, 1, kPayload);
    before = transport_bytes(first, numbered_bytes(kPayload));
    next = transport_bytes(second, numbered_bytes(kPayload));
  }
  std::size_t headers() const { return header_length(first); }

  Packet first;
  Packet second;
  Bytes before;
  Bytes next;
};

TEST(CodecRun, TheNextPacketContinuesAndNoOtherDoes) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    const Neighbours pair(random);
    EXPECT_TRUE(continues_run(pair.before, pair.next));
    EXPECT_FALSE(continues_run(pair.before, pair.before));
    EXPECT_FALSE(continues_run(pair.next, pair.before));
    for (std::size_t bit = 0; bit < 8 * pair.headers(); ++bit) {
      Bytes other = pair.next;
      other[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      EXPECT_FALSE(continues_run(pair.before, other)) << "bit " << bit;
    }
    Bytes other_data = pair.next;
    other_data.back() ^= std::byte{1};
    EXPECT_TRUE(continues_run(pair.before, other_data)) << "the check looks after that";
  }
}

TEST(CodecRun, PsnAndAddressTurnRound) {
  Packet first;
  first.bth.opcode = Opcode::kWriteMiddle;
  first.bth.psn = Psn(Psn::kMask);
  first.body = Write{.address = ~std::uint64_t{0} - 3, .message_length = 1'000};
  Packet second = first;
  move_on(second, 1, kPayload);
  EXPECT_EQ(second.bth.psn, Psn(0));
  EXPECT_TRUE(continues_run(transport_bytes(first, numbered_bytes(kPayload)),
                            transport_bytes(second, numbered_bytes(kPayload))));
}

TEST(CodecRun, OnlyPacketsOfTheMiddleAreRuns) {
  Random random(4);
  for (const Opcode opcode : test::kAllOpcodes) {
    if (opcode == Opcode::kWriteMiddle || !is_write(opcode)) continue;
    Packet first = test::random_packet(random, opcode, kPayload);
    Packet second = first;
    move_on(second, 1, kPayload);
    EXPECT_FALSE(continues_run(transport_bytes(first, numbered_bytes(kPayload)),
                               transport_bytes(second, numbered_bytes(kPayload))));
  }
}

// Bytes from outside: no prefix of a packet, padded or not, is read beyond its end.
TEST(CodecRun, ShortOnesAndPaddedOnesAreNone) {
  Random random(5);
  const Neighbours pair(random);
  for (std::size_t length = 0; length <= pair.headers(); ++length) {
    const Bytes before(pair.before.begin(), pair.before.begin() + static_cast<long>(length));
    const Bytes next(pair.next.begin(), pair.next.begin() + static_cast<long>(length));
    EXPECT_FALSE(continues_run(before, next)) << length;
  }
  EXPECT_FALSE(continues_run(Bytes(pair.before.begin(), pair.before.end() - 4), pair.next));
  Packet first = test::random_packet(random, Opcode::kWriteMiddle, kPayload - 1);
  Packet second = first;
  move_on(second, 1, kPayload - 1);
  EXPECT_FALSE(continues_run(transport_bytes(first, numbered_bytes(kPayload - 1)),
                             transport_bytes(second, numbered_bytes(kPayload - 1))));
}

TEST(CodecRun, AMovedHeaderIsTheOneOfThePacketThere) {
  Random random(6);
  for (int round = 0; round < 200; ++round) {
    Neighbours pair(random);
    move_header({pair.before.data(), pair.headers()}, pair.second);
    EXPECT_EQ(pair.before, pair.next);
  }
}

}  // namespace
}  // namespace mrc::wire
