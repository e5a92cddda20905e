#include "controller/words.h"

#include <gtest/gtest.h>

#include <array>

#include "fabric/input_error.h"

namespace mrc::controller {
namespace {

using fabric::InputError;

TEST(Words, AnEvReadsAsItIsWritten) {
  for (const char* const text : {"2:0001c350", "1:00000000", "16:ffffffffffff"})
    EXPECT_EQ(ev_text(parse_ev(text), false), text);
  for (const char* const text : {"1:fc00:1::", "2:fc00:1::+fc00:2::7"})
    EXPECT_EQ(ev_text(parse_ev(text), true), text);
  EXPECT_EQ(ev_text(parse_ev("3:0xabcd"), false), "3:abcd0000");
}

TEST(Words, WhatIsNoEv) {
  for (const char* const text :
       {"", "7", "0:01", "17:01", "x:01", "1:", "1:abc", "1:zz", "1:fc00::+fc00::+fc00::",
        "1:fc00:::1", "1:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"})
    EXPECT_THROW(parse_ev(text), InputError) << text;
}

TEST(Words, AFieldReadsAsItIsWritten) {
  for (const char* const text : {"16:0xc350", "16:0xc000:0x3fff", "8:0x1:0xff:2-9"})
    EXPECT_EQ(field_text(parse_field(text)), text);
  for (const char* const text : {"16", "16:1:2:3", "16:1:2:3-4-5", "a:1", "16:1:2:3-4:5"})
    EXPECT_THROW(parse_field(text), InputError) << text;
}

TEST(Words, Widths) {
  EXPECT_EQ(parse_widths("16,8,8"), (std::vector<std::uint8_t>{16, 8, 8}));
  EXPECT_THROW(parse_widths("16,256"), InputError);
  EXPECT_THROW(parse_widths("16,"), InputError);
}

TEST(Words, ModesAndStatesHaveOneWordEach) {
  for (const char* const word : {"stev", "srv6", "udp"})
    EXPECT_STREQ(format_mode_text(parse_format_mode(word)), word);
  for (const char* const word : {"auto", "explicit", "generated"})
    EXPECT_STREQ(ev_mode_text(parse_ev_mode(word)), word);
  EXPECT_THROW(parse_format_mode("STEV"), InputError);
  EXPECT_THROW(parse_ev_mode(""), InputError);
  EXPECT_STREQ(ev_state_text(MRC_CTL_EV_ASSUMED_BAD), "assumed bad");
  EXPECT_STREQ(profile_state_text(MRC_CTL_PROFILE_ONLINE), "online");
}

TEST(Words, EventMasks) {
  for (const char* const word : {"good", "bad", "good,bad", "none"})
    EXPECT_EQ(event_mask_text(parse_event_mask(word)), word);
  EXPECT_EQ(parse_event_mask("bad,good"), MRC_CTL_EV_GOOD | MRC_CTL_EV_ASSUMED_BAD);
  EXPECT_THROW(parse_event_mask("good,worse"), InputError);
}

TEST(Words, SettingsOfCongestionControl) {
  EXPECT_EQ(parse_algorithm("none"), nullptr);
  EXPECT_STREQ(parse_algorithm("nscc"), parse_algorithm("uet-1.0-nscc"));
  EXPECT_THROW(parse_algorithm("cubic"), InputError);
  for (const char* word : {"device", "on", "off"})
    EXPECT_STREQ(trimming_text(parse_trimming(word)), word);
  EXPECT_EQ(parse_trimming("on"), 1);
  EXPECT_THROW(parse_trimming("yes"), InputError);
  mrc_ctl_cc_nscc_cfg config{};
  parse_cc_setting("target_delay=9000", config);
  parse_cc_setting("eta=0.25", config);
  EXPECT_EQ(config.target_delay, 9'000U);
  EXPECT_FLOAT_EQ(config.eta, 0.25F);
  EXPECT_THROW(parse_cc_setting("target_delay=1.5", config), InputError);
  EXPECT_THROW(parse_cc_setting("qa_gate=256", config), InputError);
  EXPECT_THROW(parse_cc_setting("nothing=1", config), InputError);
  EXPECT_THROW(parse_cc_setting("eta", config), InputError);
  EXPECT_EQ(config.target_delay, 9'000U);
}

TEST(Words, AGidOfEitherFamily) {
  const ibv_gid four = parse_gid("10.1.2.3");
  EXPECT_EQ(four.raw[9], 0);
  EXPECT_EQ(four.raw[10], 0xFF);
  EXPECT_EQ(four.raw[15], 3);
  EXPECT_EQ(parse_gid("fd00::9").raw[0], 0xFD);
  EXPECT_THROW(parse_gid("localhost"), InputError);
}

}  // namespace
}  // namespace mrc::controller
