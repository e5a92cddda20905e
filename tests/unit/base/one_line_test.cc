#include "base/one_line.h"

#include <gtest/gtest.h>

namespace mrc {
namespace {

TEST(OneLine, WhateverIsQuotedStaysOnTheLine) {
  EXPECT_EQ(one_line("a\nb\tc\r\x01 d\x7F"), "a b c   d ");
  EXPECT_EQ(one_line("t0:3 \xC3\xA4 'x'"), "t0:3 \xC3\xA4 'x'");
  EXPECT_EQ(one_line(""), "");
}

}  // namespace
}  // namespace mrc
