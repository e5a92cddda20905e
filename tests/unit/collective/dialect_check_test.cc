#include "collective/dialect_check.h"

#include <gtest/gtest.h>

#include "collective/failure.h"

namespace mrc::collective {
namespace {

std::string refusal(std::string_view own, std::string_view theirs) {
  try {
    check_dialect(own, theirs, "rank 1");
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

TEST(DialectCheck, EndsOfOneDialectMayTalk) {
  EXPECT_EQ(refusal("openmrc", "openmrc"), "");
  EXPECT_EQ(refusal("card,first_msn=1", "card,first_msn=1"), "");
}

TEST(DialectCheck, WhoSaysNothingSpeaksAsItAlwaysWas) {
  EXPECT_EQ(refusal("openmrc", ""), "");
  EXPECT_EQ(refusal("", ""), "");
  EXPECT_NE(refusal("card", ""), "");
}

TEST(DialectCheck, WhatEachDecidesForItselfMayDiffer) {
  EXPECT_EQ(refusal("openmrc", "openmrc,window=4,service_time=reflected,unknown_nak=act"), "");
}

TEST(DialectCheck, RefusalNamesFieldAndBothValues) {
  EXPECT_EQ(refusal("card", "card,first_rqmsn=1"),
            "rank 1 speaks another dialect: first_rqmsn is \"1\" there and \"0\" here, and both "
            "ends must have the same; set MRC_DIALECT or [device.NAME.dialect] alike");
  EXPECT_EQ(refusal("openmrc", "nic"),
            "rank 1 speaks a dialect that is unknown here: dialect is 'nic' but must begin with "
            "openmrc or card; use the same version on both sides");
}

}  // namespace
}  // namespace mrc::collective
