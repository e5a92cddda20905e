#include "controller/profiles.h"

#include <gtest/gtest.h>

#include "controller/words.h"
#include "fabric/input_error.h"

namespace mrc::controller {
namespace {

class SelectEvs : public testing::Test {
 protected:
  SelectEvs() {
    for (const char* const text : {"1:00000001", "2:00000002", "1:00000003", "2:00000004"}) {
      mrc_ctl_ev_op_entry entry{};
      entry.ev = parse_ev(text);
      all_.push_back(entry);
    }
  }
  std::vector<std::string> selected(const std::vector<std::string>& words) const {
    std::vector<std::string> texts;
    for (const mrc_ctl_ev& ev : select_evs(all_, words))
      texts.push_back(ev_text(ev, false));
    return texts;
  }
  using Texts = std::vector<std::string>;

  std::vector<mrc_ctl_ev_op_entry> all_;
};

TEST_F(SelectEvs, ByEveryKindOfWord) {
  EXPECT_EQ(selected({"all"}).size(), 4U);
  EXPECT_EQ(selected({"2"}), (Texts{"1:00000003"}));
  EXPECT_EQ(selected({"1-2"}), (Texts{"2:00000002", "1:00000003"}));
  EXPECT_EQ(selected({"port=2"}), (Texts{"2:00000002", "2:00000004"}));
  EXPECT_EQ(selected({"2:00000004"}), (Texts{"2:00000004"}));
  EXPECT_EQ(selected({"1:00000009"}), (Texts{"1:00000009"}));
}

TEST_F(SelectEvs, EachOnceHoweverOftenItIsNamed) {
  EXPECT_EQ(selected({"0", "0-1", "port=1"}), (Texts{"1:00000001", "2:00000002", "1:00000003"}));
}

TEST_F(SelectEvs, WordsThatMeanNothing) {
  for (const char* const word :
       {"4", "2-1", "0-4", "port=x", "port=1-2", "some", "-1", "1-", "port=3"})
    EXPECT_THROW(selected({word}), fabric::InputError) << word;
  EXPECT_THROW(selected({}), fabric::InputError);
}

}  // namespace
}  // namespace mrc::controller
