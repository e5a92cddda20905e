#include "seal/stance.h"

#include <gtest/gtest.h>

#include <iterator>

#include "unit/seal/seal_fixture.h"

namespace mrc::seal::test {
namespace {

constexpr Stance::Key kOld{.id = KeyId{0}, .print = 0x5e1f0};
constexpr Stance::Key kNew{.id = KeyId{255}, .print = 0xfffff};

TEST(StanceTest, CodesSayWhatTheyStandFor) {
  for (const Stance& stance :
       {Stance{}, Stance{{kOld}}, Stance{{kNew}}, Stance{{kOld, kNew}}, Stance{{kNew, kOld}}}) {
    const std::uint64_t code = stance_code(stance);
    EXPECT_GE(code >> 56, 0x80U);
    EXPECT_EQ(stance_of_code(code), stance);
  }
}

TEST(StanceTest, OtherNumbersAreNoCodes) {
  EXPECT_FALSE(stance_of_code(0));
  EXPECT_FALSE(stance_of_code(0x2020'2020'2020'2020));
  EXPECT_FALSE(stance_of_code(stance_code({}) | 1));
  EXPECT_FALSE(stance_of_code(stance_code({{kOld}}) | 1));
  EXPECT_FALSE(stance_of_code(stance_code({{kOld, kNew}}) | std::uint64_t{1} << 56));
}

TEST(StanceTest, MixedModesNameBothAndTheWayOut) {
  EXPECT_EQ(stance_conflict({}, {{kOld}}),
            "security is \"sealed\" there and \"off\" here, and neither takes the other's packets; "
            "set MRC_SECURITY or security in [device.NAME] alike");
  EXPECT_NE(stance_conflict({{kOld}}, {}).find("\"off\" there and \"sealed\" here"),
            std::string::npos);
  EXPECT_EQ(stance_conflict({}, {}), "");
}

TEST(StanceTest, EachEndMustHaveTheKeyThatTheOtherSealsWith) {
  EXPECT_EQ(stance_conflict({{kOld}}, {{kOld}}), "");
  // All steps of a rotation that meet each other on the way.
  EXPECT_EQ(stance_conflict({{kOld}}, {{kOld, kNew}}), "");
  EXPECT_EQ(stance_conflict({{kOld, kNew}}, {{kNew, kOld}}), "");
  EXPECT_EQ(stance_conflict({{kNew, kOld}}, {{kNew}}), "");
  // A step was left out.
  EXPECT_NE(stance_conflict({{kOld}}, {{kNew, kOld}}).find("sealed there with key 255 (fffff)"),
            std::string::npos);
  EXPECT_NE(stance_conflict({{kNew, kOld}}, {{kOld}}).find("sealed here with key 255 (fffff)"),
            std::string::npos);
}

TEST(StanceTest, TheSameIdWithAnotherSecretIsAnotherKey) {
  const Stance ours = ring_of({sample_key(3)})->stance();
  const Stance theirs = ring_of({sample_key(3, 1)})->stance();
  const std::string why = stance_conflict(ours, theirs);
  EXPECT_NE(why.find("does not open here"), std::string::npos) << why;
  EXPECT_EQ(stance_conflict(ours, ours), "");
}

TEST(StanceTest, PrintsAreWhatPeopleCompare) {
  const ClusterKey key = sample_key(3);
  const std::string shown = fingerprint(crypto(), key);
  const Stance ours = ring_of({key})->stance();
  const std::string why = stance_conflict(ours, ring_of({sample_key(4)})->stance());
  EXPECT_NE(why.find("key 3 (" + shown.substr(0, 5) + ")"), std::string::npos) << why;
}

}  // namespace
}  // namespace mrc::seal::test
