#include "seal/hkdf.h"

#include <algorithm>

#include "base/assert.h"

namespace mrc::seal {

Digest hkdf_extract(const Crypto& crypto, std::span<const std::byte> salt,
                    std::span<const std::byte> secret) {
  return crypto.hmac_sha256(salt, secret);
}

void hkdf_expand(const Crypto& crypto, std::span<const std::byte> key,
                 std::span<const std::byte> info, std::span<std::byte> out) {
  MRC_ASSERT(info.size() <= kMaxHkdfInfo && out.size() <= kMaxHkdfOutput);
  // Of each step: the block before, the purpose, the number of the step.
  SecretBytes<32 + kMaxHkdfInfo + 1> input;
  std::size_t before = 0;
  for (unsigned step = 1; !out.empty(); ++step) {
    const auto after = std::copy(info.begin(), info.end(), input.bytes.begin() + before);
    *after = static_cast<std::byte>(step);
    const Digest block =
        crypto.hmac_sha256(key, std::span(input.bytes).first(before + info.size() + 1));
    const std::size_t taken = std::min(out.size(), block.bytes.size());
    std::copy_n(block.bytes.begin(), taken, out.begin());
    out = out.subspan(taken);
    before = block.bytes.size();
    std::copy(block.bytes.begin(), block.bytes.end(), input.bytes.begin());
  }
}

}  // namespace mrc::seal
