#include "node/node_state_codec.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <limits>

#include "base/prng.h"
#include "unit/node/node_state_support.h"
#include "wire/icrc.h"

namespace mrc::node {
namespace {

using Bytes = std::vector<std::byte>;
using test::open_state;
using test::put_profiles;
using test::TemporaryDirectory;

NodeSnapshot sample() {
  NodeSnapshot state;
  state.version = 41;
  state.ports_enabled = PortMask(0b101);
  put_profiles(state, 3, 5);
  put_profiles(state, std::numeric_limits<std::uint64_t>::max(), 2);
  state.ev_profiles[3].fields = {{.width = 16, .init_val = 1, .max_val = 3, .mask = 0x30}};
  state.ev_profiles[3].evs[1].compact = wire::structured_ev(77);
  state.ev_profiles[3].evs[2].denied = true;
  state.ev_profiles[3].evs[2].assumed_bad = true;
  state.ev_profiles[3].seed = 0x0123456789ABCDEF;
  state.ev_profiles[3].has_min_active = true;
  state.ev_profiles[4] = {.state = ProfileState::kOffline, .mode = EvMode::kExplicit};
  state.ev_profiles[4].evs.resize(3);
  state.cc_profiles[9] = {.state = ProfileState::kOffline,
                          .cc = {.algorithm = core::CcAlgorithm::kNone},
                          .trimming = Trimming::kOn};
  state.drained["plane:1"] = {.by = DrainedBy::kWatch, .exclusions = {{.port = PortId{2}}}};
  state.drained["t0:0/t1:2/plane:0"].exclusions = {
      {.port = PortId{1}, .hop_count = 2, .hops = {wire::Usid{0x1000}, wire::Usid{0x8002}}},
      {.port = PortId{1}, .hop_count = 2, .hops = {wire::Usid{0x8002}, wire::Usid{0x1000}}}};
  return state;
}

// Puts length and checksum right, so that what is behind them is read.
void seal(Bytes& file) {
  const auto put = [&](std::size_t at, std::uint32_t value) {
    for (unsigned i = 0; i < 4; ++i)
      file[at + i] = static_cast<std::byte>(value >> (24 - 8 * i) & 0xFF);
  };
  put(12, static_cast<std::uint32_t>(file.size() - 28));
  const std::uint32_t state = wire::crc32_update(0xFFFF'FFFF, std::span(file).first(24));
  put(24, ~wire::crc32_update(state, std::span(file).subspan(28)));
}

void write_file(const std::string& path, const Bytes& bytes) {
  std::ofstream out(path + ".test", std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  out.close();
  std::filesystem::rename(path + ".test", path);
}

TEST(NodeStateCodec, ReadsWhatItWrote) {
  const NodeSnapshot state = sample();
  const auto file = encode_state(state);
  ASSERT_TRUE(file.ok());
  const auto back = decode_state(file.value());
  ASSERT_TRUE(back.ok()) << back.status().what();
  EXPECT_EQ(back.value().version, state.version);
  EXPECT_EQ(back.value().ports_enabled, state.ports_enabled);
  EXPECT_EQ(back.value().formats, state.formats);
  EXPECT_EQ(back.value().ev_profiles, state.ev_profiles);
  EXPECT_EQ(back.value().drained, state.drained);
  EXPECT_EQ(encode_state(back.value()).value(), file.value());
}

// Older versions go on reading what they know.
TEST(NodeStateCodec, WithoutDrainedPartsTheFileIsOfTheFirstSchema) {
  NodeSnapshot state = sample();
  EXPECT_EQ(encode_state(state).value()[11], std::byte{2});
  state.drained.begin()->second.exclusions.assign(33, {.port = PortId{1}});
  EXPECT_EQ(encode_state(state).value()[11], std::byte{kStateSchema});
  ASSERT_TRUE(decode_state(encode_state(state).value()).ok());
  state.drained.clear();
  const Bytes file = encode_state(state).value();
  EXPECT_EQ(file[11], std::byte{1});
  ASSERT_TRUE(decode_state(file).ok());
  EXPECT_EQ(encode_state(decode_state(file).value()).value(), file);
}

TEST(NodeStateCodec, RefusesPartsThatNoControllerNames) {
  for (const std::string& name : {std::string(), std::string("a b"), std::string("a\n"),
                                  std::string(kMaxPartName + 1, 'x')}) {
    NodeSnapshot state = sample();
    state.drained[name] = {};
    EXPECT_FALSE(encode_state(state).ok()) << name;
  }
  NodeSnapshot state = sample();
  state.drained["x"].exclusions.resize(kMaxExclusions + 1);
  EXPECT_FALSE(encode_state(state).ok());
  state.drained.clear();
  for (std::size_t i = 0; i <= kMaxDrainedParts; ++i)
    state.drained["x" + std::to_string(i)] = {};
  EXPECT_FALSE(encode_state(state).ok());
}

TEST(PathExclusion, IsAWayOverThesePlacesInThisOrder) {
  const std::vector<wire::Usid> way{wire::Usid{1}, wire::Usid{2}, wire::Usid{3}};
  const auto hits = [&](std::uint8_t count, unsigned one, unsigned other, unsigned port = 1) {
    return excludes({.port = PortId{1},
                     .hop_count = count,
                     .hops = {wire::Usid{static_cast<std::uint16_t>(one)},
                              wire::Usid{static_cast<std::uint16_t>(other)}}},
                    PortId{static_cast<std::uint8_t>(port)}, way);
  };
  EXPECT_TRUE(hits(0, 0, 0));
  EXPECT_FALSE(hits(0, 0, 0, 2));
  EXPECT_TRUE(hits(1, 3, 0));
  EXPECT_FALSE(hits(1, 4, 0));
  EXPECT_TRUE(hits(2, 2, 3));
  EXPECT_FALSE(hits(2, 3, 2));
  EXPECT_FALSE(hits(2, 1, 3));
  EXPECT_FALSE(hits(1, 3, 0, 2));
}

TEST(NodeStateCodec, TheLargestStateFitsTheLimitOfTheFile) {
  NodeSnapshot state;
  for (std::uint64_t id = 0; id < kMaxNodeEvs / kMaxEvsPerQp; ++id) {
    put_profiles(state, id, kMaxEvsPerQp);
    for (ProfileEv& ev : state.ev_profiles[id].evs)
      ev.compact.bytes[31] = 1;
    state.ev_profiles[id].fields.resize(kMaxFormatFields);
  }
  const auto file = encode_state(state);
  ASSERT_TRUE(file.ok());
  EXPECT_LT(file.value().size(), kMaxStateFileBytes);
  EXPECT_TRUE(decode_state(file.value()).ok());
  put_profiles(state, 1'000, 1);
  EXPECT_EQ(encode_state(state).status().code(), ErrorCode::kTooLong);
}

TEST(NodeStateCodec, RefusesAFileCutAtAnyLength) {
  const Bytes file = encode_state(sample()).value();
  for (std::size_t length = 0; length < file.size(); ++length)
    EXPECT_FALSE(decode_state(std::span(file).first(length)).ok()) << length;
}

TEST(NodeStateCodec, RefusesASealedFileCutAtAnyLength) {
  const Bytes file = encode_state(sample()).value();
  for (std::size_t length = 28; length < file.size(); ++length) {
    Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length));
    seal(cut);
    EXPECT_FALSE(decode_state(cut).ok()) << length;
  }
}

TEST(NodeStateCodec, RefusesAFileWithAnyBitFlipped) {
  Bytes file = encode_state(sample()).value();
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    file[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_FALSE(decode_state(file).ok()) << bit;
    file[bit / 8] ^= std::byte{1} << bit % 8;
  }
}

TEST(NodeStateCodec, RefusesBytesBehindTheEnd) {
  Bytes file = encode_state(sample()).value();
  file.push_back(std::byte{0});
  EXPECT_FALSE(decode_state(file).ok());
  seal(file);
  EXPECT_FALSE(decode_state(file).ok());
}

// Whatever passes the checks must be a state that can be written again.
TEST(NodeStateCodec, SealedNoiseIsRefusedOrHarmless) {
  const Bytes file = encode_state(sample()).value();
  Prng random(7);
  unsigned accepted = 0;
  for (unsigned round = 0; round < 20'000; ++round) {
    Bytes noisy = file;
    for (unsigned i = 0; i <= round % 4; ++i)
      noisy[28 + random.next64() % (noisy.size() - 28)] = static_cast<std::byte>(random.next64());
    seal(noisy);
    const auto state = decode_state(noisy);
    if (!state.ok()) continue;
    ++accepted;
    EXPECT_TRUE(encode_state(state.value()).ok());
  }
  EXPECT_GT(accepted, 0u);
}

TEST(NodeStateCodec, TellsAnotherSchemaFromABrokenFile) {
  Bytes file = encode_state(sample()).value();
  file[11] = std::byte{kStateSchema + 1};
  EXPECT_EQ(decode_state(file).status().code(), ErrorCode::kUnsupported);
  file[0] = std::byte{'x'};
  EXPECT_EQ(decode_state(file).status().code(), ErrorCode::kInvalidArgument);
}

TEST(NodeStateCodec, ABrokenFileIsReportedOnceAndCountsAsNoState) {
  const TemporaryDirectory directory;
  const auto state = open_state(directory.path());
  ASSERT_EQ(state->update([](NodeSnapshot& s) { return put_profiles(s, 1, 4), 0; }), 0);
  ASSERT_EQ(state->snapshot()->version, 1u);
  Bytes file = encode_state(sample()).value();
  file.back() ^= std::byte{1};
  write_file(directory / "state", file);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(state->snapshot()->ev_profiles.empty());
  EXPECT_TRUE(state->snapshot()->ev_profiles.empty());
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "mrc: " + (directory / "state") + ": wrong checksum; using no state\n");
  ASSERT_EQ(state->update([](NodeSnapshot& s) { return put_profiles(s, 2, 4), 0; }), 0);
  EXPECT_EQ(state->snapshot()->version, 2u);
  EXPECT_EQ(state->snapshot()->ev_profiles.size(), 1u);
}

TEST(NodeStateCodec, TheStateOfANewerVersionIsNotOverwritten) {
  const TemporaryDirectory directory;
  Bytes file = encode_state(sample()).value();
  file[11] = std::byte{kStateSchema + 1};
  write_file(directory / "state", file);
  testing::internal::CaptureStderr();
  const auto state = open_state(directory.path());
  EXPECT_TRUE(state->snapshot()->ev_profiles.empty());
  EXPECT_EQ(state->update([](NodeSnapshot& s) { return put_profiles(s, 2, 4), 0; }), ENOTSUP);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "mrc: " + (directory / "state") + ": written by another version; using no state\n");
  EXPECT_EQ(std::filesystem::file_size(directory / "state"), file.size());
}

TEST(NodeStateCodec, ThingsThatAreNoFilesCountAsNoState) {
  const TemporaryDirectory directory;
  testing::internal::CaptureStderr();
  const auto state = open_state(directory.path());
  const std::string path = directory / "state";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(state->snapshot()->version, 0u);
  ASSERT_EQ(unlink(path.c_str()), 0);
  ASSERT_EQ(symlink("/dev/zero", path.c_str()), 0);
  EXPECT_EQ(state->snapshot()->version, 0u);
  ASSERT_EQ(unlink(path.c_str()), 0);
  std::ofstream(path).close();
  std::filesystem::resize_file(path, kMaxStateFileBytes + 1);
  EXPECT_EQ(state->snapshot()->version, 0u);
  testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace mrc::node
