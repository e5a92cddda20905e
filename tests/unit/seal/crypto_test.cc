#include "seal/crypto.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <type_traits>

#include "unit/seal/seal_fixture.h"
#if __has_include(<openssl/evp.h>)
#include <openssl/crypto.h>
#include <openssl/evp.h>
#endif

namespace mrc::seal {
namespace {

using wire::test::hex;
using wire::test::to_hex;

#ifdef EVP_CTRL_AEAD_GET_TAG
#define MRC_SAME_TYPE(theirs, ours) \
  static_assert(std::is_same_v<decltype(&(theirs)), decltype(CryptoFunctions::ours)>)
MRC_SAME_TYPE(OPENSSL_init_crypto, init_crypto);
MRC_SAME_TYPE(OSSL_LIB_CTX_new, new_library_context);
MRC_SAME_TYPE(EVP_CIPHER_fetch, fetch_cipher);
MRC_SAME_TYPE(EVP_CIPHER_CTX_new, new_context);
MRC_SAME_TYPE(EVP_CIPHER_CTX_free, free_context);
MRC_SAME_TYPE(EVP_CIPHER_CTX_ctrl, control);
MRC_SAME_TYPE(EVP_CipherInit_ex, init);
MRC_SAME_TYPE(EVP_CipherUpdate, update);
MRC_SAME_TYPE(EVP_CipherFinal_ex, finish);
MRC_SAME_TYPE(EVP_Q_digest, digest);
MRC_SAME_TYPE(EVP_Q_mac, mac);
static_assert(EVP_CTRL_AEAD_GET_TAG == 0x10 && EVP_CTRL_AEAD_SET_TAG == 0x11);
static_assert(OPENSSL_INIT_NO_ATEXIT == 0x0008'0000);
#endif

TEST(Crypto, IsLoadedOnceAndHasBothSuites) {
  EXPECT_EQ(&test::crypto(), &test::crypto());
  for (const Suite suite : test::kAllSuites)
    EXPECT_TRUE(test::crypto().has(suite)) << suite_name(suite);
}

TEST(Crypto, HashesAsEverybodyDoes) {
  EXPECT_EQ(to_hex(test::crypto().sha256({}).span()),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  // RFC 4231, test case 2.
  EXPECT_EQ(to_hex(test::crypto()
                       .hmac_sha256(hex("4a656665"), hex("7768617420646f2079612077616e7420"
                                                         "666f72206e6f7468696e673f"))
                       .span()),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

// One packet through an Aead, in pieces of `step` bytes.
test::Bytes pass(Aead& aead, const Nonce& nonce, const test::Bytes& associated,
                 const test::Bytes& text, std::size_t step) {
  test::Bytes out(text.size());
  EXPECT_TRUE(aead.begin(nonce, associated));
  for (std::size_t at = 0; at < text.size(); at += step) {
    const std::size_t length = std::min(step, text.size() - at);
    EXPECT_TRUE(aead.add(std::span(text).subspan(at, length), out.data() + at));
  }
  return out;
}

// Case 4 of the GCM specification's AES-128 vectors (McGrew and Viega).
TEST(Aead, AesGcmGivesThePublishedValues) {
  const test::Bytes key_bytes = hex("feffe9928665731c6d6a8f9467308308");
  const test::Bytes nonce_bytes = hex("cafebabefacedbaddecaf888");
  const test::Bytes associated = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
  const test::Bytes text =
      hex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
          "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39");
  Aead::Key key;
  std::copy(key_bytes.begin(), key_bytes.end(), key.bytes.begin());
  Nonce nonce;
  std::copy(nonce_bytes.begin(), nonce_bytes.end(), nonce.begin());
  Aead aead(test::crypto(), Suite::kAes128Gcm, Aead::Direction::kSeal);
  aead.set_key(key);
  for (const std::size_t step : {60, 16, 7, 1}) {
    EXPECT_EQ(to_hex(pass(aead, nonce, associated, text, step)),
              "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
              "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091");
    std::array<std::byte, kTagLength> tag;
    ASSERT_TRUE(aead.write_tag(tag));
    EXPECT_EQ(to_hex(tag), "5bc94fbc3221a5db94fae95ae7121a47");
  }
}

TEST(Aead, OpensWhatItSealedAndNothingElse) {
  for (const Suite suite : test::kAllSuites) {
    Aead seals(test::crypto(), suite, Aead::Direction::kSeal);
    Aead opens(test::crypto(), suite, Aead::Direction::kOpen);
    seals.set_key({});
    opens.set_key({});
    const test::Bytes text = wire::test::numbered_bytes(100);
    const test::Bytes associated = hex("0102");
    const test::Bytes sealed = pass(seals, {}, associated, text, 30);
    std::array<std::byte, kTagLength> tag;
    ASSERT_TRUE(seals.write_tag(tag));
    EXPECT_EQ(pass(opens, {}, associated, sealed, 64), text);
    EXPECT_TRUE(opens.check_tag(tag));
    std::ignore = pass(opens, {}, hex("0103"), sealed, 64);
    EXPECT_FALSE(opens.check_tag(tag));
  }
}

// A program that looks at OpenSSL's errors after calls of its own must not find ours.
TEST(Aead, LeavesNoErrorsBehind) {
  void* const library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_NOLOAD);
  test::crypto();
  void* const loaded = library != nullptr ? library : dlopen("libcrypto.so.3", RTLD_NOW);
  auto* const peek = reinterpret_cast<unsigned long (*)()>(dlsym(loaded, "ERR_peek_error"));
  ASSERT_NE(peek, nullptr);
  for (const Suite suite : test::kAllSuites) {
    Aead opens(test::crypto(), suite, Aead::Direction::kOpen);
    opens.set_key({});
    std::ignore = pass(opens, {}, hex("01"), hex("02"), 1);
    EXPECT_FALSE(opens.check_tag(std::array<std::byte, kTagLength>{}));
    EXPECT_EQ(peek(), 0u) << suite_name(suite);
  }
}

// exit() tears libraries down while other threads go on.
TEST(CryptoDeathTest, ProgramsMayEndWhileThreadsSeal) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto end_while_sealing = [] {
    std::atomic<bool> running = false;
    std::thread([&] {
      Sealer sealer(test::sample_ring(), test::sample_flow());
      for (;;) {
        std::ignore = test::seal(sealer, test::sample_write(4096));
        running = true;
      }
    }).detach();
    while (!running)
      std::this_thread::yield();
    std::exit(0);
  };
  EXPECT_EXIT(end_while_sealing(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace mrc::seal
