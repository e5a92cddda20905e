#include "seal/traffic_keys.h"

#include <algorithm>
#include <string_view>

#include "base/assert.h"
#include "seal/hkdf.h"
#include "wire/writer.h"

namespace mrc::seal {
namespace {

constexpr std::string_view kTrafficLabel = "openmrc seal 1 traffic";
constexpr std::string_view kKeyLabel = "openmrc seal 1 key";

// Labels differ before either ends and all that follows has a fixed length, so no two purposes look
// alike.
void put_label(wire::ByteWriter& writer, std::string_view label) {
  for (const char c : label)
    writer.u8(static_cast<std::uint8_t>(c));
}

void put_gid(wire::ByteWriter& writer, const Gid& gid) {
  for (const std::byte b : gid.bytes)
    writer.u8(std::to_integer<std::uint8_t>(b));
}

Digest traffic_secret(const Crypto& crypto, const KeyRing::Key& key, const ChainName& chain) {
  std::array<std::byte, kMaxHkdfInfo> info;
  wire::ByteWriter writer(info);
  put_label(writer, kTrafficLabel);
  writer.u8(static_cast<std::uint8_t>(chain.suite));
  put_gid(writer, chain.flow.source);
  put_gid(writer, chain.flow.destination);
  writer.u64(chain.instance);
  MRC_ASSERT(!writer.failed());
  Digest secret;
  hkdf_expand(crypto, key.root.span(), std::span(info).first(writer.written()), secret.span());
  return secret;
}

}  // namespace

TrafficKeys::TrafficKeys(const Crypto& crypto, const KeyRing::Key& key, const ChainName& chain,
                         Aead::Direction direction)
    : crypto_(&crypto),
      suite_(chain.suite),
      secret_(traffic_secret(crypto, key, chain)),
      epochs_{Epoch{Aead(crypto, suite_, direction), {}, {}},
              Epoch{Aead(crypto, suite_, direction), {}, {}}} {}

void TrafficKeys::derive(Epoch& epoch, std::uint64_t number) const {
  std::array<std::byte, kMaxHkdfInfo> info;
  wire::ByteWriter writer(info);
  put_label(writer, kKeyLabel);
  writer.u64(number);
  MRC_ASSERT(!writer.failed());

  const std::size_t key_length = Aead::key_length(suite_);
  SecretBytes<32 + kNonceLength> material;
  const auto used = std::span(material.bytes).first(key_length + kNonceLength);
  hkdf_expand(*crypto_, secret_.span(), std::span(info).first(writer.written()), used);
  Aead::Key key;
  std::copy_n(used.begin(), key_length, key.bytes.begin());
  std::copy_n(used.begin() + static_cast<std::ptrdiff_t>(key_length), kNonceLength,
              epoch.iv.bytes.begin());
  epoch.aead.set_key(key);
  epoch.number = number;
}

Aead* TrafficKeys::begin(std::uint64_t number, std::span<const std::byte> associated) {
  const std::uint64_t wanted = epoch_of(number);
  Epoch& epoch = epochs_[wanted & 1];
  if (epoch.number != wanted) [[unlikely]]
    derive(epoch, wanted);
  Nonce nonce = epoch.iv.bytes;
  for (unsigned i = 0; i < 8; ++i)
    nonce[kNonceLength - 1 - i] ^= static_cast<std::byte>(number >> (8 * i) & 0xFF);
  return epoch.aead.begin(nonce, associated) ? &epoch.aead : nullptr;
}

}  // namespace mrc::seal
