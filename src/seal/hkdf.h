// HKDF with SHA-256 (RFC 5869): keys from a secret, each for one purpose.
#pragma once

#include <cstddef>
#include <span>

#include "seal/crypto.h"

namespace mrc::seal {

[[nodiscard]] Digest hkdf_extract(const Crypto& crypto, std::span<const std::byte> salt,
                                  std::span<const std::byte> secret);

inline constexpr std::size_t kMaxHkdfInfo = 128;
inline constexpr std::size_t kMaxHkdfOutput = 255 * 32;
// Fills `out`. Both spans are within the limits above.
void hkdf_expand(const Crypto& crypto, std::span<const std::byte> key,
                 std::span<const std::byte> info, std::span<std::byte> out);

}  // namespace mrc::seal
