#include "seal/crypto.h"

#include <dlfcn.h>

#include <utility>

#include "base/assert.h"
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace mrc::seal {
namespace {

// Of OpenSSL's evp.h and crypto.h; crypto_test.cc compares them.
constexpr int kGetTag = 0x10;
constexpr int kSetTag = 0x11;
constexpr std::uint64_t kNoAtExit = 0x0008'0000;

constexpr const char* kLibrary = "libcrypto.so.3";

bool has_fast_aes() {
#if defined(__aarch64__)
  constexpr unsigned long kWanted = HWCAP_AES | HWCAP_PMULL;
  return (::getauxval(AT_HWCAP) & kWanted) == kWanted;
#elif defined(__x86_64__)
  return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#else
  return false;
#endif
}

template <typename Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* library, CryptoFunctions& f) {
  return find(library, "OPENSSL_init_crypto", f.init_crypto) &&
         find(library, "OSSL_LIB_CTX_new", f.new_library_context) &&
         find(library, "EVP_CIPHER_fetch", f.fetch_cipher) &&
         find(library, "EVP_CIPHER_CTX_new", f.new_context) &&
         find(library, "EVP_CIPHER_CTX_free", f.free_context) &&
         find(library, "EVP_CIPHER_CTX_ctrl", f.control) &&
         find(library, "EVP_CipherInit_ex", f.init) &&
         find(library, "EVP_CipherUpdate", f.update) &&
         find(library, "EVP_CipherFinal_ex", f.finish) && find(library, "EVP_Q_digest", f.digest) &&
         find(library, "EVP_Q_mac", f.mac);
}

const unsigned char* in_bytes(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}
unsigned char* out_bytes(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

}  // namespace

Result<const Crypto*> Crypto::load() {
  static const Result<const Crypto*> kLoaded = []() -> Result<const Crypto*> {
    static CryptoFunctions functions;
    void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) {
      return Status(ErrorCode::kNotFound,
                    "sealed traffic needs libcrypto.so.3 of OpenSSL 3, which does not load; "
                    "install the package libssl3");
    }
    if (!find_all(library, functions)) {
      return Status(ErrorCode::kUnsupported,
                    "libcrypto.so.3 lacks functions of OpenSSL 3.0; install the package libssl3");
    }
    // The first to ask decides for the process: without this, the end of the program would free
    // what engine threads still use. Where the program was first, our own context must do.
    functions.init_crypto(kNoAtExit, nullptr);
    ossl_lib_ctx_st* const context = functions.new_library_context();
    if (context == nullptr) {
      return Status(ErrorCode::kNoSpace, "libcrypto.so.3 does not start: out of memory");
    }
    auto* const crypto = new Crypto(functions, context);
    if (!crypto->has(Suite::kAes128Gcm)) {
      return Status(ErrorCode::kUnsupported,
                    "libcrypto.so.3 offers no AES-128-GCM; install the package libssl3");
    }
    return crypto;
  }();
  return kLoaded;
}

Crypto::Crypto(const CryptoFunctions& functions, ossl_lib_ctx_st* context)
    : functions_(functions),
      context_(context),
      aes_(functions.fetch_cipher(context, "AES-128-GCM", nullptr)),
      chacha_(functions.fetch_cipher(context, "ChaCha20-Poly1305", nullptr)) {}

Suite Crypto::fastest() const {
  const bool aes = has_fast_aes() || !has(Suite::kChaCha20Poly1305);
  return aes ? Suite::kAes128Gcm : Suite::kChaCha20Poly1305;
}

Digest Crypto::sha256(std::span<const std::byte> bytes) const {
  Digest digest;
  const int done = functions_.digest(context_, "SHA256", nullptr, bytes.data(), bytes.size(),
                                     out_bytes(digest.bytes.data()), nullptr);
  MRC_ASSERT(done == 1);  // only for want of memory
  return digest;
}

Digest Crypto::hmac_sha256(std::span<const std::byte> key,
                           std::span<const std::byte> message) const {
  Digest digest;
  // OpenSSL takes a null pointer for a key that is missing, not for one of no bytes.
  static constexpr std::byte kNothing{};
  const std::byte* const key_bytes = key.empty() ? &kNothing : key.data();
  std::size_t length = 0;
  const unsigned char* const done = functions_.mac(
      context_, "HMAC", nullptr, "SHA256", nullptr, key_bytes, key.size(), in_bytes(message.data()),
      message.size(), out_bytes(digest.bytes.data()), digest.bytes.size(), &length);
  MRC_ASSERT(done != nullptr && length == digest.bytes.size());  // only for want of memory
  return digest;
}

Aead::Aead(const Crypto& crypto, Suite suite, Direction direction)
    : functions_(&crypto.functions_), context_(functions_->new_context()) {
  const bool seals = direction == Direction::kSeal;
  const int done =
      functions_->init(context_, crypto.cipher(suite), nullptr, nullptr, nullptr, seals ? 1 : 0);
  MRC_ASSERT(done == 1);
}

Aead::Aead(Aead&& other) noexcept
    : functions_(other.functions_), context_(std::exchange(other.context_, nullptr)) {}

Aead::~Aead() { functions_->free_context(context_); }

void Aead::set_key(const Key& key) {
  const int done =
      functions_->init(context_, nullptr, nullptr, in_bytes(key.bytes.data()), nullptr, -1);
  MRC_ASSERT(done == 1);
}

bool Aead::begin(const Nonce& nonce, std::span<const std::byte> associated) {
  int length = 0;
  return functions_->init(context_, nullptr, nullptr, nullptr, in_bytes(nonce.data()), -1) == 1 &&
         functions_->update(context_, nullptr, &length, in_bytes(associated.data()),
                            static_cast<int>(associated.size())) == 1;
}

bool Aead::add(std::span<const std::byte> in, std::byte* out) {
  if (in.empty()) return true;
  int length = 0;
  return functions_->update(context_, out_bytes(out), &length, in_bytes(in.data()),
                            static_cast<int>(in.size())) == 1;
}

bool Aead::write_tag(std::span<std::byte, kTagLength> tag) {
  int length = 0;
  return functions_->finish(context_, out_bytes(tag.data()), &length) == 1 &&
         functions_->control(context_, kGetTag, kTagLength, tag.data()) == 1;
}

bool Aead::check_tag(std::span<const std::byte, kTagLength> tag) {
  std::array<std::byte, kTagLength> copy;
  std::copy(tag.begin(), tag.end(), copy.begin());
  int length = 0;
  return functions_->control(context_, kSetTag, kTagLength, copy.data()) == 1 &&
         functions_->finish(context_, out_bytes(copy.data()), &length) == 1;
}

}  // namespace mrc::seal
