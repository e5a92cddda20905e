#include "seal/key_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "support/temporary_directory.h"
#include "unit/seal/seal_fixture.h"

namespace mrc::seal {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kDigits(64, '5');
const std::string kOtherDigits(64, '6');
const std::string kLine = "key 0 " + kDigits + "\n";

class KeyFileTest : public testing::Test {
 protected:
  // The error about a file with this text; it must name the file, be one line and show no secret.
  std::string error_for(const std::string& text) {
    write(text);
    return error();
  }
  std::string error() {
    const KeyFileResult result = load_key_file(path_);
    EXPECT_TRUE(result.keys.empty());
    EXPECT_THAT(result.error, StartsWith(path_));
    EXPECT_THAT(result.error, Not(HasSubstr("\n")));
    EXPECT_THAT(result.error, Not(HasSubstr("5555")));
    return result.error;
  }
  void write(const std::string& text) {
    std::ofstream(path_) << text;
    chmod(path_.c_str(), 0600);
  }
  std::string read() {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  mrc::test::TemporaryDirectory folder_;
  std::string path_ = folder_ / "cluster.key";
};

TEST_F(KeyFileTest, ReadsOneKeyOrTwo) {
  write("# comment\n\n  key\t7  " + kDigits + " \n");
  KeyFileResult result = load_key_file(path_);
  ASSERT_TRUE(result.ok()) << result.error;
  ASSERT_EQ(result.keys.size(), 1u);
  EXPECT_EQ(result.keys[0].id, KeyId{7});
  EXPECT_EQ(result.keys[0].secret.bytes[31], std::byte{0x55});

  write("key 255 " + std::string(64, 'F') + "\nkey 0 " + kDigits);
  result = load_key_file(path_);
  ASSERT_TRUE(result.ok()) << result.error;
  ASSERT_EQ(result.keys.size(), 2u);
  EXPECT_EQ(result.keys[0].id, KeyId{255});
  EXPECT_EQ(result.keys[0].secret.bytes[0], std::byte{0xFF});
}

TEST_F(KeyFileTest, SaysWhatIsWrongWithTheText) {
  EXPECT_THAT(error_for(""), EndsWith("no key in it; make one with: mrc key new FILE"));
  EXPECT_THAT(error_for("# nothing\n"), HasSubstr("no key in it"));
  EXPECT_THAT(error_for(kDigits + "\n"), HasSubstr(":1: a line is a comment (#) or: key NUMBER"));
  EXPECT_THAT(error_for("\nkey 256 " + kDigits), HasSubstr(":2: the number of a key is 0 to 255"));
  EXPECT_THAT(error_for("key -1 " + kDigits), HasSubstr("is 0 to 255"));
  EXPECT_THAT(error_for("key 1x " + kDigits), HasSubstr("is 0 to 255"));
  EXPECT_THAT(error_for("key " + kDigits), HasSubstr("is 0 to 255"));
  EXPECT_THAT(error_for("key 1 " + kDigits.substr(1)),
              HasSubstr("64 hexadecimal digits, this one has 63 characters; copy the file again"));
  EXPECT_THAT(error_for("key 1 " + kDigits + "5"), HasSubstr("has 65 characters"));
  EXPECT_THAT(error_for("key 1"), HasSubstr("has 0 characters"));
  EXPECT_THAT(error_for("key 1 g" + kDigits.substr(1)), HasSubstr("hexadecimal digits only"));
  EXPECT_THAT(error_for("key 1 " + kDigits + " x"), HasSubstr("something behind the key"));
  EXPECT_THAT(error_for("key 1 " + kDigits + "\r\n"), HasSubstr("has 65 characters"));
  EXPECT_THAT(error_for(kLine + "key 0 " + kOtherDigits), HasSubstr(":2: two keys have the same"));
  EXPECT_THAT(error_for(kLine + "key 1 " + kDigits), HasSubstr(":2: two keys are the same"));
  EXPECT_THAT(error_for(kLine + "key 1 " + kOtherDigits + "\nkey 2 " + std::string(64, '7')),
              HasSubstr(":3: a third key"));
}

TEST_F(KeyFileTest, RefusesFilesThatOthersMayOpen) {
  write(kLine);
  for (const mode_t mode : {0640, 0604, 0620, 0610, 0666, 0601}) {
    chmod(path_.c_str(), mode);
    EXPECT_THAT(error(), HasSubstr("open to others than its owner (mode 0"));
    EXPECT_THAT(error(), HasSubstr("chmod 600 it"));
  }
  chmod(path_.c_str(), 0400);
  EXPECT_TRUE(load_key_file(path_).ok());
}

TEST_F(KeyFileTest, RefusesWhatIsNoFileOfOurs) {
  EXPECT_THAT(error(), HasSubstr("No such file or directory; make one with: mrc key new " + path_));
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(error(), HasSubstr("not a regular file"));
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  EXPECT_THAT(error(), HasSubstr("not a regular file"));
  ASSERT_EQ(rmdir(path_.c_str()), 0);
  ASSERT_EQ(symlink("/etc/passwd", path_.c_str()), 0);
  EXPECT_THAT(error(), HasSubstr("a symbolic link; name the key file itself"));
  ASSERT_EQ(unlink(path_.c_str()), 0);
  EXPECT_THAT(error_for(kLine + "#" + std::string(kMostKeyFileBytes, 'x')),
              HasSubstr("more than 4096 bytes"));
}

TEST_F(KeyFileTest, RefusesFilesOfOtherUsers) {
  write(kLine);
  if (chown(path_.c_str(), 12'345, 12'345) != 0) GTEST_SKIP() << "needs root to give files away";
  EXPECT_THAT(error(), HasSubstr("belongs to user 12345, who is neither you nor root; chown it"));
}

TEST_F(KeyFileTest, CreatesAFileForTheOwnerAlone) {
  const ClusterKeys keys = {test::sample_key(3), test::sample_key(9)};
  const mode_t before = umask(0);
  EXPECT_EQ(create_key_file(path_, keys), "");
  umask(before);
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_EQ(status.st_nlink, 1u);
  const KeyFileResult result = load_key_file(path_);
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_EQ(result.keys, keys);
}

TEST_F(KeyFileTest, NeverOverwritesWhenItCreates) {
  write(kLine);
  EXPECT_THAT(create_key_file(path_, {test::sample_key(3)}),
              HasSubstr("File exists; it stays as it is (to replace its key: mrc key rotate)"));
  EXPECT_EQ(read(), kLine);
  EXPECT_NE(access((path_ + ".new").c_str(), F_OK), 0);
}

TEST_F(KeyFileTest, SaysWhereItCannotWrite) {
  EXPECT_THAT(create_key_file(folder_ / "missing/key", {test::sample_key(3)}),
              HasSubstr("missing/key.new: No such file or directory"));
  EXPECT_THAT(replace_key_file(path_, {test::sample_key(3)}), HasSubstr("mrc key new"));
}

TEST_F(KeyFileTest, ReplacesAFileAtOnce) {
  write(kLine);
  EXPECT_EQ(replace_key_file(path_, {test::sample_key(3)}), "");
  EXPECT_EQ(load_key_file(path_).keys, ClusterKeys{test::sample_key(3)});
  std::ofstream(path_ + ".new") << "left over";
  EXPECT_THAT(replace_key_file(path_, {test::sample_key(4)}),
              HasSubstr("File exists; somebody else is at it, or was killed: then remove it"));
  EXPECT_EQ(load_key_file(path_).keys, ClusterKeys{test::sample_key(3)});
}

TEST_F(KeyFileTest, KeepsTheOwnerOfAFileItReplaces) {
  write(kLine);
  if (chown(path_.c_str(), 12'345, 12'345) != 0) GTEST_SKIP() << "needs root to give files away";
  EXPECT_EQ(replace_key_file(path_, {test::sample_key(3)}), "");
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 12'345u);
  EXPECT_EQ(status.st_gid, 12'345u);
}

TEST(ClusterKeys, AreDrawnAtRandom) {
  const ClusterKey a = draw_cluster_key(KeyId{1});
  const ClusterKey b = draw_cluster_key(KeyId{1});
  EXPECT_EQ(a.id, KeyId{1});
  EXPECT_NE(a.secret, b.secret);
  EXPECT_NE(a.secret, SecretBytes<32>{});
}

TEST(ClusterKeys, AreReplacedInThreeSteps) {
  ClusterKeys keys = {test::sample_key(255)};
  EXPECT_THAT(rotate_keys(keys, RotationStep::kPromote), HasSubstr("add the new one first"));
  EXPECT_THAT(rotate_keys(keys, RotationStep::kDrop), HasSubstr("add the new one first"));

  EXPECT_EQ(rotate_keys(keys, RotationStep::kAdd), "");
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[0], test::sample_key(255));
  const ClusterKey fresh = keys[1];
  EXPECT_EQ(fresh.id, KeyId{0});
  EXPECT_THAT(rotate_keys(keys, RotationStep::kAdd), HasSubstr("two keys already"));
  EXPECT_THAT(rotate_keys(keys, RotationStep::kDrop), HasSubstr("key 0 is the new one"));

  EXPECT_EQ(rotate_keys(keys, RotationStep::kPromote), "");
  EXPECT_EQ(keys, (ClusterKeys{fresh, test::sample_key(255)}));
  EXPECT_THAT(rotate_keys(keys, RotationStep::kPromote), HasSubstr("key 0 seals already"));

  EXPECT_EQ(rotate_keys(keys, RotationStep::kDrop), "");
  EXPECT_EQ(keys, ClusterKeys{fresh});
}

}  // namespace
}  // namespace mrc::seal
