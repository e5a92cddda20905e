#include "seal/sealer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "os/host_bug.h"
#include "os/kernel_random.h"
#include "seal/fork_mark.h"

namespace mrc::seal {
namespace {

constexpr std::array<std::byte, 3> kPadding{};
constexpr std::uint64_t kNumbersEnd = std::numeric_limits<std::uint64_t>::max();

}  // namespace

Sealer::Sealer(KeyRingRef ring, const Flow& flow, const SealerOptions& options)
    : ring_(std::move(ring)) {
  chain_.suite = options.suite.value_or(ring_->crypto().fastest());
  MRC_ASSERT(ring_->crypto().has(chain_.suite));
  chain_.flow = flow;
  begin_chain(options.first_number);
}

void Sealer::begin_chain(std::uint64_t first_number) {
  generation_ = fork_generation();
  chain_.instance = os::KernelRandom().next64();
  number_ = first_number;
  keys_.reset();
  keys_.emplace(ring_->crypto(), ring_->sealing_key(), chain_, Aead::Direction::kSeal);
}

void Sealer::set_ring(KeyRingRef ring) {
  const KeyRingRef before = std::exchange(ring_, std::move(ring));
  const KeyRing::Key& now = ring_->sealing_key();
  const KeyRing::Key& then = before->sealing_key();
  if (now.identity != then.identity || now.id != then.id) begin_chain(0);
}

void Sealer::write_headers(std::span<const std::byte> clear, std::span<std::byte> out) const {
  const KeyRing::Key& key = ring_->sealing_key();
  std::copy(clear.begin(), clear.end(), out.begin());
  set_transport_version(out, kSealedVersion);
  const auto header = out.subspan(clear.size()).first<kSealHeaderLength>();
  write_seal_header(
      {.suite = chain_.suite, .key = key.id, .instance = chain_.instance, .number = number_},
      header);
  const auto tagged = out.first(clear.size() + kTaggedLength);
  write_header_tag(header_tag(key.header_key.span(), chain_.flow, tagged), header);
}

std::size_t Sealer::seal(std::span<const std::byte> header, wire::PayloadPieces payload,
                         unsigned pad, std::span<std::byte> out) {
  const std::size_t clear = clear_length(header);
  MRC_ASSERT(clear != 0 && clear <= header.size() && transport_version(header) == 0);
  MRC_ASSERT(pad <= kPadding.size());
  const std::size_t length = sealed_length(header.size(), wire::payload_bytes(payload), pad);
  if (length > out.size()) return 0;
  const bool in_child = generation_ != fork_generation() && !MRC_HOST_BUG(kChildNumbersOn);
  if (in_child || number_ == kNumbersEnd) [[unlikely]]
    begin_chain(0);

  write_headers(header.first(clear), out);
  std::byte* at = out.data() + clear + kSealHeaderLength;
  // The number is used up whatever comes of it.
  Aead* const aead = keys_->begin(number_++, out.first(clear + kSealHeaderLength));
  bool good = aead != nullptr && aead->add(header.subspan(clear), at);
  at += header.size() - clear;
  for (const auto piece : payload) {
    good = good && aead->add(piece, at);
    at += piece.size();
  }
  good = good && aead->add(std::span(kPadding).first(pad), at) &&
         aead->write_tag(out.subspan(length - kTagLength).first<kTagLength>());
  return good ? length : 0;
}

}  // namespace mrc::seal
