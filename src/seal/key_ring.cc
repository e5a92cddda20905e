#include "seal/key_ring.h"

#include <array>
#include <string_view>

#include "base/assert.h"
#include "seal/hkdf.h"
#include "wire/byte_order.h"

namespace mrc::seal {
namespace {

constexpr std::string_view kSalt = "openmrc seal 1";
constexpr std::string_view kHeaderLabel = "openmrc seal 1 header";
constexpr std::string_view kIdentityLabel = "openmrc seal 1 identity";

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::uint32_t print_of(const Crypto& crypto, const ClusterKey& key) {
  const Digest digest = crypto.sha256(key.secret.span());
  return wire::load_big_endian<std::uint32_t>(digest.bytes.data()) >> (32 - Stance::kPrintBits);
}

}  // namespace

KeyRing::KeyRing(const Crypto& crypto, const ClusterKeys& keys) : crypto_(crypto) {
  MRC_ASSERT(!keys.empty() && keys.size() <= kMostKeys);
  for (const ClusterKey& from : keys) {
    Key& key = keys_.emplace_back();
    key.id = from.id;
    key.root = hkdf_extract(crypto, bytes_of(kSalt), from.secret.span());
    hkdf_expand(crypto, key.root.span(), bytes_of(kHeaderLabel), key.header_key.span());
    std::array<std::byte, sizeof key.identity> identity;
    hkdf_expand(crypto, key.root.span(), bytes_of(kIdentityLabel), identity);
    key.identity = wire::load_big_endian<std::uint64_t>(identity.data());
    stance_.keys.push_back({.id = from.id, .print = print_of(crypto, from)});
  }
}

std::string fingerprint(const Crypto& crypto, const ClusterKey& key) {
  const Digest digest = crypto.sha256(key.secret.span());
  std::string text;
  for (const std::byte b : digest.span().first<4>()) {
    text += "0123456789abcdef"[std::to_integer<unsigned>(b) >> 4];
    text += "0123456789abcdef"[std::to_integer<unsigned>(b) & 0x0F];
  }
  return text;
}

}  // namespace mrc::seal
