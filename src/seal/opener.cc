#include "seal/opener.h"

#include <cstring>
#include <utility>

#include "os/host_bug.h"
#include "wire/packet.h"

namespace mrc::seal {
namespace {

// A datagram of our form, taken apart.
struct Sealed {
  SealHeader header;
  std::size_t clear = 0;
  std::span<std::byte> bytes;

  std::span<const std::byte> tagged() const { return bytes.first(clear + kTaggedLength); }
  std::span<const std::byte> associated() const { return bytes.first(clear + kSealHeaderLength); }
};

OpenResult take_apart(std::span<std::byte> datagram, Extent extent, Sealed& sealed) {
  using enum OpenResult;
  if (datagram.size() < wire::kBthLength) return kMalformed;
  const std::uint8_t version = transport_version(datagram);
  if (version == 0) return kPlain;
  const bool trimmed = extent == Extent::kTrimmed;
  sealed.clear = clear_length(datagram);
  const std::size_t least = sealed.clear + kSealHeaderLength + (trimmed ? 0 : kTagLength);
  if (version != kSealedVersion || sealed.clear == 0 || datagram.size() < least) return kMalformed;
  if (trimmed && trimmed_length(datagram) == 0) return kMalformed;
  sealed.bytes = datagram;
  const auto header = datagram.subspan(sealed.clear).first<kSealHeaderLength>();
  return read_seal_header(header, sealed.header) ? kOpened : kMalformed;
}

// All that needs no state: form, key, and whether a member of the cluster wrote these headers.
OpenResult check_headers(const KeyRing& ring, const Flow& flow, std::span<std::byte> datagram,
                         Extent extent, Sealed& sealed, const KeyRing::Key*& key) {
  using enum OpenResult;
  const OpenResult form = take_apart(datagram, extent, sealed);
  if (form != kOpened) return form;
  key = ring.find(sealed.header.key);
  if (key == nullptr) return kUnknownKey;
  const std::uint64_t tag = header_tag(key->header_key.span(), flow, sealed.tagged());
  if (tag != sealed.header.tag && !MRC_HOST_BUG(kHeaderTagNotCompared)) return kBadHeaderTag;
  return ring.crypto().has(sealed.header.suite) ? kOpened : kUnknownSuite;
}

// Decrypts where it stands. What is behind the headers is worth nothing when this says no.
bool decrypt(TrafficKeys& keys, const Sealed& sealed) {
  Aead* const aead = keys.begin(sealed.header.number, sealed.associated());
  if (aead == nullptr) return false;
  const auto rest = sealed.bytes.subspan(sealed.clear + kSealHeaderLength);
  const auto text = rest.first(rest.size() - kTagLength);
  const bool added = aead->add(text, text.data());
  return added && (aead->check_tag(rest.last<kTagLength>()) || MRC_HOST_BUG(kTagNotCompared));
}

// The transport part in one piece: the clear headers move up to what follows them.
std::span<std::byte> join(const Sealed& sealed) {
  const auto whole = sealed.bytes.subspan(kSealHeaderLength, sealed.bytes.size() - kSealOverhead);
  std::memmove(whole.data(), sealed.bytes.data(), sealed.clear);
  set_transport_version(whole, 0);
  return whole;
}

std::span<std::byte> clear_part(const Sealed& sealed) {
  set_transport_version(sealed.bytes, 0);
  return sealed.bytes.first(sealed.clear);
}

OpenResult verdict_of(ReplayWindow::Verdict verdict) {
  using enum ReplayWindow::Verdict;
  if (verdict == kNew) return OpenResult::kOpened;
  return verdict == kSeen ? OpenResult::kReplayed : OpenResult::kTooOld;
}

}  // namespace

const char* open_result_name(OpenResult result) {
  using enum OpenResult;
  switch (result) {
    case kOpened:
      return "opened";
    case kPlain:
      return "plain";
    case kMalformed:
      return "malformed";
    case kUnknownKey:
      return "unknown_key";
    case kBadHeaderTag:
      return "bad_header_tag";
    case kUnknownSuite:
      return "unknown_suite";
    case kReplayed:
      return "replayed";
    case kTooOld:
      return "too_old";
    case kBadTag:
      return "bad_tag";
    case kCount:
      break;
  }
  return "unknown";
}

Opener::Opener(KeyRingRef ring, const Gid& own) : ring_(std::move(ring)), own_(own) {}

void Opener::set_ring(KeyRingRef ring) {
  ring_ = std::move(ring);
  chains_.drop_keys();
}

TrafficKeys Opener::derive(const KeyRing::Key& key, const ChainId& id) const {
  const ChainName name{.suite = id.suite, .flow = {id.source, own_}, .instance = id.instance};
  return {ring_->crypto(), key, name, Aead::Direction::kOpen};
}

OpenResult Opener::check_new(const Chain* chain, const ChainId& id, std::uint64_t number) const {
  if (MRC_HOST_BUG(kReplaysOpen)) return OpenResult::kOpened;
  if (chain != nullptr) return verdict_of(chain->window.check(number));
  const std::optional<std::uint64_t> highest = chains_.forgotten(id);
  const bool old = highest && number <= *highest && !MRC_HOST_BUG(kForgottenSendersStartOver);
  return old ? OpenResult::kTooOld : OpenResult::kOpened;
}

OpenResult Opener::open(const Gid& source, std::span<std::byte> datagram, Extent extent,
                        std::span<std::byte>& transport) {
  transport = {};
  Sealed sealed;
  const KeyRing::Key* key = nullptr;
  OpenResult result = check_headers(*ring_, {source, own_}, datagram, extent, sealed, key);
  if (result != OpenResult::kOpened) return result;
  const SealHeader& header = sealed.header;
  const ChainId id{source, header.instance, key->identity, header.suite};
  Chain* chain = chains_.find(id);
  result = check_new(chain, id, header.number);
  if (result != OpenResult::kOpened) return result;

  if (extent == Extent::kTrimmed) {
    // The header tag is all the proof there is, and all that is used is under it.
    if (chain == nullptr) chain = &chains_.add(id);
    transport = clear_part(sealed);
  } else if (chain != nullptr) {
    if (!chain->keys) chain->keys.emplace(derive(*key, id));
    if (!decrypt(*chain->keys, sealed)) return OpenResult::kBadTag;
    transport = join(sealed);
  } else {
    TrafficKeys keys = derive(*key, id);
    if (!decrypt(keys, sealed)) return OpenResult::kBadTag;
    chain = &chains_.add(id);
    chain->keys.emplace(std::move(keys));
    transport = join(sealed);
  }
  chain->window.mark(header.number);
  chains_.touch(*chain);
  return OpenResult::kOpened;
}

OpenResult open_captured(const KeyRing& ring, const Flow& flow, std::span<std::byte> datagram,
                         Extent extent, std::span<std::byte>& transport) {
  transport = {};
  Sealed sealed;
  const KeyRing::Key* key = nullptr;
  const OpenResult result = check_headers(ring, flow, datagram, extent, sealed, key);
  if (result != OpenResult::kOpened) return result;
  if (extent == Extent::kTrimmed) {
    transport = clear_part(sealed);
    return OpenResult::kOpened;
  }
  const ChainName name{
      .suite = sealed.header.suite, .flow = flow, .instance = sealed.header.instance};
  TrafficKeys keys(ring.crypto(), *key, name, Aead::Direction::kOpen);
  if (!decrypt(keys, sealed)) return OpenResult::kBadTag;
  transport = join(sealed);
  return OpenResult::kOpened;
}

}  // namespace mrc::seal
