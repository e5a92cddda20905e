#include "strangers/datagrams.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <vector>

#include "base/prng.h"
#include "seal/opener.h"
#include "seal/sealer.h"
#include "wire/codec.h"
#include "wire/frame.h"

namespace mrc::strangers {
namespace {

constexpr std::size_t kPayload = 256;
constexpr std::size_t kMostHeaders = 256;

using Payload = std::array<std::byte, kPayload>;

Payload random_payload(Prng& prng) {
  Payload payload;
  for (std::byte& b : payload)
    b = static_cast<std::byte>(prng.next32());
  return payload;
}

wire::Packet a_write(Prng& prng) {
  wire::Packet packet;
  packet.bth.opcode = wire::Opcode::kWriteOnly;
  packet.bth.destination = QpNumber{prng.below(1U << 24)};
  packet.bth.psn = Psn(prng.below(1U << 24));
  packet.body = wire::Write{.msn = static_cast<std::uint16_t>(prng.next32()),
                            .address = prng.next64(),
                            .key = Rkey{prng.next32()},
                            .message_length = kPayload};
  return packet;
}

void turn_bits(std::span<std::byte> bytes, Prng& prng) {
  for (unsigned i = 1 + prng.below(3); i != 0; --i) {
    const std::uint32_t bit = prng.below(static_cast<std::uint32_t>(bytes.size() * 8));
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
  }
}

// A frame as a device of one of the three kinds sends it.
struct Sample {
  wire::FrameHeader header;
  wire::Packet packet;
  Payload payload;
  std::vector<std::byte> bytes;
};

Sample make_sample(const wire::FrameFormat& format, Prng& prng, unsigned kind) {
  Sample sample;
  sample.packet = a_write(prng);
  sample.payload = random_payload(prng);
  sample.header.source = wire::ipv6_address(0xfc00'0001'0000'0000, 1 + prng.below(1000));
  sample.header.destination = wire::ipv6_address(0xfc00'0001'0000'0000, 2000);
  sample.header.dscp = format.dscp.trimmable;
  sample.header.entropy = prng.next32();
  if (kind == 1) {
    sample.header.srv6 = true;
    sample.header.outer.source = sample.header.source;
    sample.header.outer.carrier = wire::ipv6_address(0xfc00'0000'0000'0000, prng.next64());
  }
  const std::array pieces = {std::span<const std::byte>(sample.payload)};
  sample.bytes.resize(kPayload + kMostHeaders);
  const std::size_t length =
      wire::build_frame(format, sample.header, sample.packet, pieces, sample.bytes);
  if (length == 0) broken("a frame cannot be built");
  sample.bytes.resize(length);
  return sample;
}

// Nothing but what a switch may change, or a trimmed packet, which carries no byte.
void check_taken(const Sample& sample, const wire::FrameHeader& header, const wire::Packet& packet,
                 std::span<const std::byte> payload) {
  if (header.trim != wire::TrimMark::kNone) {
    if (!payload.empty()) broken("a trimmed frame has a payload");
    return;
  }
  const bool same =
      header.source == sample.header.source && header.destination == sample.header.destination &&
      std::equal(payload.begin(), payload.end(), sample.payload.begin(), sample.payload.end()) &&
      packet == sample.packet;
  if (!same) broken("a damaged frame was taken");
}

seal::KeyRingRef ring() {
  const auto crypto = seal::Crypto::load();
  if (!crypto.ok()) return nullptr;
  seal::ClusterKey key;
  for (std::size_t i = 0; i < key.secret.bytes.size(); ++i)
    key.secret.bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return std::make_shared<const seal::KeyRing>(*crypto.value(), seal::ClusterKeys{key});
}

seal::Gid host(unsigned number) {
  return seal::gid_of(wire::ipv6_address(0xfc00'0001'0000'0000, number));
}

}  // namespace

void damage_frames(std::uint64_t packets, std::uint64_t seed, Tally& tally) {
  constexpr std::uint64_t kOfEachSample = 4096;
  Prng prng(seed);
  const wire::FrameFormat format;
  std::uint64_t refused = 0;
  std::uint64_t harmless = 0;
  std::vector<std::byte> copy;
  Sample sample;
  for (std::uint64_t i = 0; i < packets; ++i) {
    if (i % kOfEachSample == 0) sample = make_sample(format, prng, i / kOfEachSample % 2);
    copy = sample.bytes;
    turn_bits(copy, prng);
    wire::FrameHeader header;
    wire::Packet packet;
    std::span<const std::byte> payload;
    if (wire::parse_frame(format, copy, header, packet, payload) == DropReason::kNone) {
      check_taken(sample, header, packet, payload);
      ++harmless;
    } else {
      ++refused;
    }
  }
  tally.rows.push_back({"frame, bits turned: refused", refused});
  tally.rows.push_back({"frame, bits turned: only what switches may change", harmless});
}

void damage_sealed(std::uint64_t packets, std::uint64_t seed, Tally& tally) {
  constexpr std::uint64_t kOfEachSample = 64;
  const seal::KeyRingRef keys = ring();
  if (keys == nullptr) {
    tally.rows.push_back({"sealed (no OpenSSL here)", 0});
    return;
  }
  Prng prng(seed);
  seal::Sealer sealer(keys, {host(1), host(2)});
  seal::Opener opener(keys, host(2));
  std::uint64_t changed = 0;
  std::uint64_t repeated = 0;
  std::vector<std::byte> sealed;
  std::vector<std::byte> copy;
  std::span<std::byte> opened;
  for (std::uint64_t i = 0; i < packets; ++i) {
    if (i % kOfEachSample == 0) {
      std::array<std::byte, wire::kMaxTransportHeader> header;
      const std::size_t length = wire::build_transport(a_write(prng), header);
      const Payload payload = random_payload(prng);
      const std::array pieces = {std::span<const std::byte>(payload)};
      sealed.resize(seal::Sealer::sealed_length(length, kPayload, 0));
      if (sealer.seal(std::span(header).first(length), pieces, 0, sealed) != sealed.size())
        broken("a packet cannot be sealed");
    }
    copy = sealed;
    // The first half of each sample is changed, then it is opened once, then it is repeated.
    const std::uint64_t turn = i % kOfEachSample;
    const bool change = turn < kOfEachSample / 2;
    const bool genuine = turn == kOfEachSample / 2;
    if (change) turn_bits(copy, prng);
    if (change && copy == sealed) copy[0] ^= std::byte{1};  // two bits that were one
    const seal::OpenResult result = opener.open(host(1), copy, seal::Extent::kWhole, opened);
    const bool as_it_must = change    ? result != seal::OpenResult::kOpened
                            : genuine ? result == seal::OpenResult::kOpened
                                      : result == seal::OpenResult::kReplayed;
    if (!as_it_must) broken(std::string("sealed: ") + seal::open_result_name(result));
    if (change) ++changed;
    if (!change && !genuine) ++repeated;
  }
  tally.rows.push_back({"sealed, bits turned", changed});
  tally.rows.push_back({"sealed, repeated", repeated});
}

}  // namespace mrc::strangers
