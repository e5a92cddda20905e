// OpenSSL's libcrypto, loaded when somebody seals and not before.
//
// Neither header nor library of OpenSSL is needed to build: whoever does not seal has nothing to
// install, and the library loads beside any other. The functions used are of the stable interface
// of OpenSSL 3; a test compares their types with the headers where there are some.
//
// What is loaded has a library context of its own. So it reads no configuration of the program's,
// shares no provider with it, and survives the end of the program, when the program's OpenSSL is
// torn down while threads of ours may still send.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "seal/layout.h"
#include "seal/secret_bytes.h"

// OpenSSL's own names for what it keeps to itself.
// NOLINTBEGIN(readability-identifier-naming)
struct engine_st;
struct evp_cipher_ctx_st;
struct evp_cipher_st;
struct ossl_init_settings_st;
struct ossl_lib_ctx_st;
struct ossl_param_st;
// NOLINTEND(readability-identifier-naming)

namespace mrc::seal {

struct CryptoFunctions;

using Digest = SecretBytes<32>;

class Crypto {
 public:
  // The same for the whole process; loads it the first time. The error is for people.
  [[nodiscard]] static Result<const Crypto*> load();

  Crypto(const Crypto&) = delete;
  Crypto& operator=(const Crypto&) = delete;

  // AES-128-GCM always; a library set up for FIPS may lack the other.
  bool has(Suite suite) const { return cipher(suite) != nullptr; }
  // What this processor is good at.
  Suite fastest() const;

  Digest sha256(std::span<const std::byte> bytes) const;
  Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message) const;

 private:
  friend class Aead;
  Crypto(const CryptoFunctions& functions, ossl_lib_ctx_st* context);
  const evp_cipher_st* cipher(Suite suite) const {
    return suite == Suite::kAes128Gcm ? aes_ : chacha_;
  }

  const CryptoFunctions& functions_;
  ossl_lib_ctx_st* context_;
  evp_cipher_st* aes_;
  evp_cipher_st* chacha_;
};

inline constexpr std::size_t kNonceLength = 12;
using Nonce = std::array<std::byte, kNonceLength>;

// One key of one suite, in one direction. Keeps OpenSSL's state, so that a packet costs only its
// bytes and its nonce. Not thread safe.
class Aead {
 public:
  enum class Direction : std::uint8_t { kSeal, kOpen };
  // The longer of the suites' keys.
  using Key = SecretBytes<32>;

  // Of a suite that `crypto` has.
  Aead(const Crypto& crypto, Suite suite, Direction direction);
  ~Aead();
  Aead(Aead&& other) noexcept;
  Aead(const Aead&) = delete;
  Aead& operator=(const Aead&) = delete;
  Aead& operator=(Aead&&) = delete;

  static std::size_t key_length(Suite suite) { return suite == Suite::kAes128Gcm ? 16 : 32; }
  // Takes the first bytes of `key`, as many as the suite needs.
  void set_key(const Key& key);

  // One packet: begin(), then add() for its pieces, then write_tag() or check_tag(). What add()
  // wrote when opening is worth nothing until check_tag() said yes. False: no, or no memory.
  [[nodiscard]] bool begin(const Nonce& nonce, std::span<const std::byte> associated);
  // `out` has room for `in`; the two are the same place or do not overlap.
  [[nodiscard]] bool add(std::span<const std::byte> in, std::byte* out);
  [[nodiscard]] bool write_tag(std::span<std::byte, kTagLength> tag);
  [[nodiscard]] bool check_tag(std::span<const std::byte, kTagLength> tag);

 private:
  const CryptoFunctions* functions_;
  evp_cipher_ctx_st* context_;
};

// The part of libcrypto that is used; crypto.cc has their names there.
struct CryptoFunctions {
  int (*init_crypto)(std::uint64_t options, const ossl_init_settings_st* settings);
  ossl_lib_ctx_st* (*new_library_context)();
  evp_cipher_st* (*fetch_cipher)(ossl_lib_ctx_st* context, const char* name,
                                 const char* properties);
  evp_cipher_ctx_st* (*new_context)();
  void (*free_context)(evp_cipher_ctx_st* context);
  int (*control)(evp_cipher_ctx_st* context, int type, int argument, void* pointer);
  int (*init)(evp_cipher_ctx_st* context, const evp_cipher_st* cipher, engine_st* engine,
              const unsigned char* key, const unsigned char* iv, int encrypt);
  int (*update)(evp_cipher_ctx_st* context, unsigned char* out, int* out_length,
                const unsigned char* in, int in_length);
  int (*finish)(evp_cipher_ctx_st* context, unsigned char* out, int* out_length);
  int (*digest)(ossl_lib_ctx_st* context, const char* name, const char* properties,
                const void* data, std::size_t length, unsigned char* out, std::size_t* out_length);
  unsigned char* (*mac)(ossl_lib_ctx_st* context, const char* name, const char* properties,
                        const char* algorithm, const ossl_param_st* parameters, const void* key,
                        std::size_t key_length, const unsigned char* data, std::size_t length,
                        unsigned char* out, std::size_t out_size, std::size_t* out_length);
};

}  // namespace mrc::seal
