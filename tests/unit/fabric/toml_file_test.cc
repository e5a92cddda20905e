#include "fabric/toml_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "fabric/input_error.h"
#include "support/temporary_directory.h"

namespace mrc::fabric {
namespace {

using testing::StartsWith;

std::string objection(std::string_view text) {
  try {
    parse_toml(text, "a.toml");
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(TomlFile, ATextBecomesATable) {
  const toml::table table = parse_toml("a = 1\n[b]\nc = \"x\"\n", "a.toml");
  EXPECT_EQ(table["a"].value<int>(), 1);
  EXPECT_EQ(table["b"]["c"].value<std::string>(), "x");
  EXPECT_TRUE(parse_toml("", "a.toml").empty());
}

TEST(TomlFile, AnErrorBeginsWithTheFileAndTheLine) {
  EXPECT_THAT(objection("a = 1\nb = \n"), StartsWith("a.toml:2: "));
  EXPECT_THAT(objection("a = 1\n\n\na = 2\n"), StartsWith("a.toml:4: "));
}

TEST(TomlFile, AnErrorIsOneLine) {
  EXPECT_EQ(objection("a = \"x\ny\"").find('\n'), std::string::npos);
}

// The parser asserts on some of these; here they are errors like others.
TEST(TomlFile, NoTextStopsTheProgram) {
  for (const char* text : {"[=", "[[", "=", "\"", "a.", "[a]\n[a]", "a = 0x", "a = [", "{"})
    EXPECT_THAT(objection(text), StartsWith("a.toml:")) << text;
}

TEST(TomlFile, OnlyCommentsAndQuotedTextsMayHoldMoreThanAscii) {
  EXPECT_EQ(objection("# gr\u00FC\u00DFe\na = \"\u00FC\""), "");
  EXPECT_THAT(objection("a = 1\n\u00FC = 2"), StartsWith("a.toml:2: only comments"));
}

TEST(TomlFile, PlacesAreNamedByLine) {
  const toml::table table = parse_toml("\n\nkey = 5\n", "a.toml");
  EXPECT_EQ(place("a.toml", table["key"].node()->source()), "a.toml:3: ");
}

TEST(TomlFile, FilesAreReadAndNamedInErrors) {
  const test::TemporaryDirectory directory;
  const std::string path = directory / "net.toml";
  std::ofstream(path) << "hosts = 4\n";
  EXPECT_EQ(load_toml(path)["hosts"].value<int>(), 4);
  std::ofstream(path) << "hosts 4\n";
  try {
    load_toml(path);
    FAIL() << "read";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), StartsWith(path + ":1: "));
  }
}

TEST(TomlFile, AnEmptyFileIsAnEmptyTableAndAFolderIsNone) {
  const test::TemporaryDirectory directory;
  const std::string path = directory / "empty.toml";
  std::ofstream{path};
  EXPECT_TRUE(load_toml(path).empty());
  EXPECT_THROW(load_toml(directory.path()), InputError);
  EXPECT_THROW(load_toml(directory / "nothing.toml"), InputError);
}

}  // namespace
}  // namespace mrc::fabric
