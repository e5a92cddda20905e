#include "seal/sealer.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>
#include <set>
#include <tuple>

#include "unit/seal/seal_fixture.h"

namespace mrc::seal {
namespace {

SealHeader header_of(const test::Bytes& sealed) {
  SealHeader header;
  const auto bytes = std::span(sealed).subspan(clear_length(sealed)).first<kSealHeaderLength>();
  EXPECT_TRUE(read_seal_header(bytes, header));
  return header;
}

TEST(Sealer, LeavesClearHeadersAndHidesTheRest) {
  for (const wire::Opcode opcode : wire::test::kAllOpcodes) {
    Sealer sealer(test::sample_ring(), test::sample_flow());
    const test::Plain plain = test::sample(opcode, wire::is_write(opcode) ? 100 : 0);
    test::Bytes sealed = test::seal(sealer, plain);
    ASSERT_EQ(sealed.size(), plain.whole.size() + kSealOverhead);
    const std::size_t clear = clear_length(plain.whole);
    set_transport_version(sealed, 0);
    EXPECT_TRUE(std::equal(sealed.begin(), sealed.begin() + clear, plain.whole.begin()));
    const auto hidden = std::span(plain.whole).subspan(clear);
    const auto behind = std::span(sealed).subspan(clear + kSealHeaderLength);
    const auto start = hidden.first(std::min<std::size_t>(hidden.size(), 8));
    const auto found = std::search(behind.begin(), behind.end(), start.begin(), start.end());
    EXPECT_EQ(found, behind.end());
  }
}

TEST(Sealer, NumbersPacketsFromZero) {
  Sealer sealer(test::sample_ring(), test::sample_flow());
  for (std::uint64_t i = 0; i < 5; ++i) {
    const SealHeader header = header_of(test::seal(sealer, test::sample_ack()));
    EXPECT_EQ(header.number, i);
    EXPECT_EQ(header.instance, sealer.instance());
    EXPECT_EQ(header.key, KeyId{0});
  }
}

TEST(Sealer, NeedsRoomForAllOfIt) {
  Sealer sealer(test::sample_ring(), test::sample_flow());
  const test::Plain plain = test::sample_write(9);
  const std::span<const std::byte> piece(plain.payload);
  test::Bytes out(plain.whole.size() + kSealOverhead, std::byte{0xEE});
  for (std::size_t size = 0; size < out.size(); ++size) {
    const auto room = std::span(out).first(size);
    EXPECT_EQ(sealer.seal(plain.header, {&piece, 1}, plain.packet.bth.pad, room), 0u);
  }
  EXPECT_EQ(out, test::Bytes(out.size(), std::byte{0xEE}));
  EXPECT_EQ(sealer.next_number(), 0u);
  EXPECT_EQ(sealer.seal(plain.header, {&piece, 1}, plain.packet.bth.pad, out), out.size());
}

TEST(Sealer, TakesThePayloadInPieces) {
  for (const Suite suite : test::kAllSuites) {
    Sealer sealer(test::sample_ring(), test::sample_flow(), {.suite = suite});
    Opener opener(test::sample_ring(), test::host(2));
    const test::Plain plain = test::sample_write(1001);
    const std::span<const std::byte> all(plain.payload);
    for (const std::size_t step : {1, 3, 16, 500, 1001}) {
      std::vector<std::span<const std::byte>> pieces = {{}};
      for (std::size_t at = 0; at < all.size(); at += step)
        pieces.push_back(all.subspan(at, std::min(step, all.size() - at)));
      pieces.emplace_back();
      test::Bytes out(2000);
      out.resize(sealer.seal(plain.header, pieces, plain.packet.bth.pad, out));
      EXPECT_EQ(test::open(opener, out).transport, plain.whole) << step;
    }
  }
}

// Same flow, same key: only instance and number keep nonces apart.
TEST(Sealer, NoTwoPacketsShareANonce) {
  std::set<std::tuple<std::uint64_t, std::uint64_t>> seen;
  std::set<test::Bytes> datagrams;
  const test::Plain plain = test::sample_write(16);
  for (int i = 0; i < 50; ++i) {
    Sealer sealer(test::sample_ring(), test::sample_flow());
    for (int j = 0; j < 20; ++j) {
      const test::Bytes sealed = test::seal(sealer, plain);
      const SealHeader header = header_of(sealed);
      EXPECT_TRUE(seen.emplace(header.instance, header.number).second);
      EXPECT_TRUE(datagrams.insert({sealed.begin() + 48, sealed.end()}).second);
    }
  }
}

TEST(Sealer, BeginsAnotherChainInAChild) {
  Sealer sealer(test::sample_ring(), test::sample_flow());
  std::ignore = test::seal(sealer, test::sample_ack());
  const std::uint64_t instance = sealer.instance();
  const pid_t child = fork();
  if (child == 0) {
    const SealHeader header = header_of(test::seal(sealer, test::sample_ack()));
    _exit(header.instance != instance && header.number == 0 && sealer.next_number() == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  const SealHeader header = header_of(test::seal(sealer, test::sample_ack()));
  EXPECT_EQ(header.instance, instance);
  EXPECT_EQ(header.number, 1u);
}

TEST(Sealer, BeginsAnotherChainWithAnotherKey) {
  Sealer sealer(test::ring_of({test::sample_key(1)}), test::sample_flow());
  std::ignore = test::seal(sealer, test::sample_ack());
  const std::uint64_t first = sealer.instance();
  sealer.set_ring(test::ring_of({test::sample_key(1), test::sample_key(2)}));
  EXPECT_EQ(sealer.instance(), first);
  EXPECT_EQ(sealer.next_number(), 1u);
  sealer.set_ring(test::ring_of({test::sample_key(2), test::sample_key(1)}));
  EXPECT_NE(sealer.instance(), first);
  EXPECT_EQ(header_of(test::seal(sealer, test::sample_ack())).key, KeyId{2});
  // Back to a key that was used before: its numbers must not come again.
  sealer.set_ring(test::ring_of({test::sample_key(1)}));
  EXPECT_NE(sealer.instance(), first);
  EXPECT_EQ(sealer.next_number(), 0u);
}

TEST(Sealer, BeginsAnotherChainWhenNumbersRunOut) {
  constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();
  Sealer sealer(test::sample_ring(), test::sample_flow(), {.first_number = kLast - 1});
  const SealHeader before = header_of(test::seal(sealer, test::sample_ack()));
  const SealHeader after = header_of(test::seal(sealer, test::sample_ack()));
  EXPECT_EQ(before.number, kLast - 1);
  EXPECT_EQ(after.number, 0u);
  EXPECT_NE(after.instance, before.instance);
}

TEST(Sealer, UsesWhatTheProcessorIsGoodAt) {
  const Sealer sealer(test::sample_ring(), test::sample_flow());
  EXPECT_EQ(sealer.suite(), test::crypto().fastest());
}

}  // namespace
}  // namespace mrc::seal
