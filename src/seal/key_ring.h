// The keys of a cluster as packets need them: one to seal with, all to open with.
//
// A ring never changes; who reads the file again makes another one and hands it to sealers and
// openers (set_ring).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "seal/crypto.h"
#include "seal/key_file.h"
#include "seal/stance.h"

namespace mrc::seal {

class KeyRing {
 public:
  struct Key {
    KeyId id{};
    std::uint64_t identity = 0;                   // tells keys apart that have the same id
    Digest root;                                  // from which traffic keys are derived
    SecretBytes<SipHash::kKeyLength> header_key;  // the same for all nodes
  };

  // One or two keys, as key_file.h gives them.
  KeyRing(const Crypto& crypto, const ClusterKeys& keys);

  const Crypto& crypto() const { return crypto_; }
  std::span<const Key> keys() const { return keys_; }
  // What peers are told.
  const Stance& stance() const { return stance_; }
  const Key& sealing_key() const { return keys_.front(); }
  const Key* find(KeyId id) const {
    for (const Key& key : keys_) {
      if (key.id == id) return &key;
    }
    return nullptr;
  }

 private:
  const Crypto& crypto_;
  std::vector<Key> keys_;
  Stance stance_;
};

using KeyRingRef = std::shared_ptr<const KeyRing>;

// What people compare: the first eight digits of the SHA-256 of a secret.
[[nodiscard]] std::string fingerprint(const Crypto& crypto, const ClusterKey& key);

}  // namespace mrc::seal
