#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "commands/manual/command_text.h"
#include "commands/manual/completion.h"
#include "commands/manual/man_page.h"

namespace mrc::tool::manual {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Manual : public testing::Test {
 protected:
  Manual() {
    CLI::App* cable = program_.add_subcommand("cable", "Look after cables");
    CLI::App* cut = cable->add_subcommand("cut", "Cut one");
    cut->add_option("CABLE", text_, "Which")->required();
    cut->add_option("-w,--how", text_, "In which way")
        ->check(CLI::IsMember({"clean", "torn"}))
        ->capture_default_str();
    cut->add_option("--times", number_, "How often")
        ->check(CLI::Range(1, 9))
        ->capture_default_str()
        ->group("More");
    cut->add_flag("--verify,!--no-verify", flag_, "Look at it afterwards");
    cut->add_flag("--secret", flag_, "For the command itself")->group("");
    cable->add_subcommand("exec", "Run a program there")->prefix_command();
    program_.add_subcommand("unseen", "For the program itself")->group("");
  }

  CommandText described() const { return describe(program_); }
  CommandText cable() const { return described().commands.front(); }
  CommandText cut() const { return cable().commands.front(); }

  CLI::App program_{"A program.", "prog"};
  std::string text_ = "torn";
  int number_ = 3;
  bool flag_ = true;
};

TEST_F(Manual, ACommandIsKnownByItsWholeWay) {
  EXPECT_THAT(cut().path, ElementsAre("prog", "cable", "cut"));
  EXPECT_EQ(cut().summary, "Cut one");
  EXPECT_TRUE(cable().commands.back().runs_programs);
  EXPECT_FALSE(cut().runs_programs);
}

TEST_F(Manual, AnOptionIsDescribedAsItWasDeclared) {
  const std::vector<OptionText> options = all_options(cut());
  ASSERT_EQ(options.size(), 4U);  // with --help
  const OptionText& how = options[1];
  EXPECT_THAT(how.names, ElementsAre("-w", "--how"));
  EXPECT_EQ(how.value, "TEXT");
  EXPECT_THAT(how.choices, ElementsAre("clean", "torn"));
  EXPECT_EQ(how.default_value, "torn");
  const OptionText& verify = options[2];
  EXPECT_THAT(verify.names, ElementsAre("--verify", "--no-verify"));
  EXPECT_EQ(verify.value, "");
  const OptionText& times = options[3];
  EXPECT_EQ(times.limits, "1 - 9");
  EXPECT_THAT(times.choices, IsEmpty());
  EXPECT_EQ(cut().groups.back().name, "More");
  ASSERT_EQ(cut().positionals.size(), 1U);
  EXPECT_TRUE(cut().positionals.front().required);
}

TEST_F(Manual, WhatHelpHidesIsHidden) {
  EXPECT_EQ(described().commands.size(), 1U);
  for (const std::string& text : {man_page(cable(), {"1.0", {"prog"}}),
                                  bash_completion(described()), zsh_completion(described())}) {
    EXPECT_THAT(text, Not(HasSubstr("secret")));
    EXPECT_THAT(text, Not(HasSubstr("unseen")));
  }
}

TEST_F(Manual, APageTellsAllOfACommandAndOfThoseBelow) {
  const std::string page = man_page(cable(), {"1.0", {"prog"}});
  EXPECT_THAT(page, HasSubstr(".TH PROG\\-CABLE 1 \"\" \"OpenMRC 1.0\""));
  EXPECT_THAT(page, HasSubstr("prog\\-cable \\- Look after cables\n"));
  EXPECT_THAT(page, HasSubstr(".SS prog cable cut\n"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-w\\fR, \\fB\\-\\-how\\fR \\fITEXT\\fR\nIn which way.\n"
                              "One of: clean, torn.\nDefault: torn.\n"));
  EXPECT_THAT(page, HasSubstr("Within 1 \\- 9.\n"));
  EXPECT_THAT(page, HasSubstr(".BR prog (1)\n"));
  EXPECT_THAT(man_page(described(), {"1.0", {}, true}), HasSubstr("\\fBprog\\-cable\\fR(1)\n"));
}

TEST_F(Manual, ExamplesStayAsTheyAreAndProseFlows) {
  CommandText command = cut();
  command.footer = "Some words\nand more.\nSuch as:\n  an  example\n  another\nThe end.";
  EXPECT_THAT(
      man_page(command, {"1.0", {}}),
      HasSubstr(
          "Some words\nand more.\n.PP\nSuch as:\n.PP\n.nf\n  an  example\n  another\n.fi\n.PP\n"
          "The end.\n"));
}

TEST(TroffText, NoLetterIsTakenForACommand) {
  EXPECT_EQ(troff_text(".SH"), "\\&.SH");
  EXPECT_EQ(troff_text("'a'"), "\\&\\(aqa\\(aq");
  EXPECT_EQ(troff_text("a\\b -c `d` ~^"), "a\\eb \\-c \\(gad\\(ga \\(ti\\(ha");
}

}  // namespace
}  // namespace mrc::tool::manual
