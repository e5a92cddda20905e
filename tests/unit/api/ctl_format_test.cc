// EV format profiles: their life, modes and fields.
#include "unit/api/ctl_fixture.h"

namespace mrc::api {
namespace {

using CtlFormat = test::CtlTest;

TEST_F(CtlFormat, GoesThroughItsWholeLife) {
  EXPECT_EQ(format_state(7), MRC_CTL_PROFILE_INIT);
  EXPECT_EQ(create_format(7, MRC_CTL_EV_FMT_MODE_STEV), 0);
  EXPECT_EQ(format_state(7), MRC_CTL_PROFILE_OFFLINE);
  EXPECT_EQ(set_format_fields(7, {8, 8, 16}), 0);
  EXPECT_EQ(set_format_state(7, MRC_CTL_PROFILE_ONLINE), 0);
  EXPECT_EQ(format_state(7), MRC_CTL_PROFILE_ONLINE);
  EXPECT_EQ(set_format_state(7, MRC_CTL_PROFILE_OFFLINE), 0);
  EXPECT_EQ(set_format_state(7, MRC_CTL_PROFILE_INIT), 0);
  EXPECT_EQ(format_state(7), MRC_CTL_PROFILE_INIT);
  EXPECT_TRUE(node().snapshot()->formats.empty());
}

TEST_F(CtlFormat, AnyOtherStepIsRefused) {
  for (const auto to : {MRC_CTL_PROFILE_INIT, MRC_CTL_PROFILE_ONLINE})
    EXPECT_EQ(set_format_state(1, to), EINVAL);
  ASSERT_EQ(create_format(1, MRC_CTL_EV_FMT_MODE_STEV), 0);
  EXPECT_EQ(set_format_state(1, MRC_CTL_PROFILE_OFFLINE), EINVAL);
  EXPECT_EQ(create_format(1, MRC_CTL_EV_FMT_MODE_STEV), EINVAL);
  ASSERT_EQ(set_format_fields(1, {32}, kFmtState), 0);
  EXPECT_EQ(set_format_state(1, MRC_CTL_PROFILE_ONLINE), EINVAL);
  EXPECT_EQ(set_format_state(1, MRC_CTL_PROFILE_INIT), EINVAL);
  EXPECT_EQ(set_format_state(1, static_cast<mrc_ctl_profile_state>(3)), EINVAL);
}

TEST_F(CtlFormat, NeedsAModeToBeCreatedAndFieldsToGoOnline) {
  EXPECT_EQ(set_format_state(1, MRC_CTL_PROFILE_OFFLINE), EINVAL);
  EXPECT_EQ(create_format(1, static_cast<mrc_ctl_ev_fmt_mode>(0)), EINVAL);
  EXPECT_EQ(create_format(1, static_cast<mrc_ctl_ev_fmt_mode>(3)), EINVAL);
  EXPECT_EQ(create_format(1, static_cast<mrc_ctl_ev_fmt_mode>(8)), EINVAL);
  ASSERT_EQ(create_format(1, MRC_CTL_EV_FMT_MODE_UDP), 0);
  EXPECT_EQ(set_format_state(1, MRC_CTL_PROFILE_ONLINE), EINVAL);
  mrc_ctl_ev_fmt_profile_attr attr{};
  attr.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_UDP;
  EXPECT_EQ(modify_format(1, kFmtMode, attr), 0);
}

TEST_F(CtlFormat, TheStateExpectedMustBeTheStateItIsIn) {
  mrc_ctl_ev_fmt_profile_attr attr{};
  attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
  attr.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_STEV;
  attr.cur_profile_state = MRC_CTL_PROFILE_OFFLINE;
  const int mask = kFmtState | kFmtMode | MRC_CTL_EV_FMT_PROFILE_CUR_STATE;
  EXPECT_EQ(modify_format(1, mask, attr), EINVAL);
  attr.cur_profile_state = MRC_CTL_PROFILE_INIT;
  EXPECT_EQ(modify_format(1, mask, attr), 0);
}

TEST_F(CtlFormat, FieldsMustFitWhatPacketsCarry) {
  ASSERT_EQ(create_format(1, MRC_CTL_EV_FMT_MODE_STEV), 0);
  EXPECT_EQ(set_format_fields(1, {16, 17}), E2BIG);
  EXPECT_EQ(set_format_fields(1, {33}), E2BIG);
  EXPECT_EQ(set_format_fields(1, {16, 0}), EINVAL);
  EXPECT_EQ(set_format_fields(1, {}), EINVAL);
  EXPECT_EQ(set_format_fields(1, Widths(257, 1)), E2BIG);
  EXPECT_EQ(set_format_fields(1, {16, 16}), 0);
  ASSERT_EQ(create_format(2, MRC_CTL_EV_FMT_MODE_UDP), 0);
  EXPECT_EQ(set_format_fields(2, {17}), E2BIG);
  EXPECT_EQ(set_format_fields(2, {16}), 0);
  ASSERT_EQ(create_format(3, MRC_CTL_EV_FMT_MODE_SRV6), 0);
  EXPECT_EQ(set_format_fields(3, {255, 2}), E2BIG);
  EXPECT_EQ(set_format_fields(3, {255, 1}), 0);
  EXPECT_EQ(node().snapshot()->formats.at(3).kind, wire::EvKind::kSrv6Segment);
  EXPECT_EQ(set_format_fields(3, {32, 16, 16, 16, 16}), 0);
  EXPECT_EQ(node().snapshot()->formats.at(3).kind, wire::EvKind::kSrv6);
}

TEST_F(CtlFormat, FieldsChangeOnlyOffline) {
  EXPECT_EQ(set_format_fields(1, {32}), EINVAL);
  ASSERT_NO_FATAL_FAILURE(online_format(1, MRC_CTL_EV_FMT_MODE_STEV, {32}));
  EXPECT_EQ(set_format_fields(1, {16, 16}), EINVAL);
  ASSERT_EQ(set_format_state(1, MRC_CTL_PROFILE_OFFLINE), 0);
  EXPECT_EQ(set_format_fields(1, {16, 16}), 0);
}

TEST_F(CtlFormat, FieldsAreReadBackAndTooLittleRoomIsTold) {
  ASSERT_NO_FATAL_FAILURE(online_format(1, MRC_CTL_EV_FMT_MODE_SRV6, {32, 16, 16}));
  mrc_ctl_ev_fmt_field fields[4] = {};
  mrc_ctl_ev_fmt_profile_attr attr{};
  attr.ev_fmt_op.op = MRC_CTL_EV_FMT_OP_QUERY_FIELDS;
  attr.ev_fmt_op.fmt_fields = fields;
  attr.ev_fmt_op.fmt_field_count = 2;
  EXPECT_EQ(why(mrc_ctl_query_ev_fmt_profile(ctx(), 1, &attr, kFmtOp)), E2BIG);
  EXPECT_EQ(attr.ev_fmt_op.fmt_field_count, 3);
  EXPECT_EQ(fields[0].width, 0);
  attr.ev_fmt_op.fmt_field_count = 4;
  EXPECT_EQ(why(mrc_ctl_query_ev_fmt_profile(ctx(), 1, &attr, kFmtOp | kFmtMode | kFmtState)), 0);
  EXPECT_EQ(attr.ev_fmt_op.fmt_field_count, 3);
  EXPECT_EQ(fields[0].width, 32);
  EXPECT_EQ(fields[2].width, 16);
  EXPECT_EQ(attr.ev_fmt_mode, MRC_CTL_EV_FMT_MODE_SRV6);
  EXPECT_EQ(attr.profile_state, MRC_CTL_PROFILE_ONLINE);
  attr.ev_fmt_op.fmt_fields = nullptr;
  EXPECT_EQ(why(mrc_ctl_query_ev_fmt_profile(ctx(), 1, &attr, kFmtOp)), EINVAL);
  attr.ev_fmt_op.fmt_field_count = 0;
  EXPECT_EQ(why(mrc_ctl_query_ev_fmt_profile(ctx(), 1, &attr, kFmtOp)), E2BIG);
  attr.ev_fmt_op.fmt_field_count = -1;
  EXPECT_EQ(why(mrc_ctl_query_ev_fmt_profile(ctx(), 1, &attr, kFmtOp)), EINVAL);
}

TEST_F(CtlFormat, StaysOnlineWhileAnEvProfileUsesIt) {
  ASSERT_NO_FATAL_FAILURE(explicit_profile(5, {1, 2, 3, 4}));
  ASSERT_EQ(set_format_state(1, MRC_CTL_PROFILE_OFFLINE), 0);
  EXPECT_EQ(ev_online(5), EINVAL);
  ASSERT_EQ(set_format_state(1, MRC_CTL_PROFILE_ONLINE), 0);
  ASSERT_EQ(ev_online(5), 0);
  EXPECT_EQ(set_format_state(1, MRC_CTL_PROFILE_OFFLINE), EBUSY);
  EXPECT_EQ(format_state(1), MRC_CTL_PROFILE_ONLINE);
  ASSERT_EQ(set_ev_state(5, MRC_CTL_PROFILE_OFFLINE), 0);
  EXPECT_EQ(set_format_state(1, MRC_CTL_PROFILE_OFFLINE), 0);
}

TEST_F(CtlFormat, WrongArgumentsChangeNothing) {
  ASSERT_NO_FATAL_FAILURE(online_format(1, MRC_CTL_EV_FMT_MODE_STEV, {32}));
  const std::uint64_t before = version();
  mrc_ctl_ev_fmt_profile_attr attr{};
  EXPECT_EQ(why(mrc_ctl_modify_ev_fmt_profile(nullptr, 1, &attr, kFmtState)), EINVAL);
  EXPECT_EQ(why(mrc_ctl_modify_ev_fmt_profile(ctx(), 1, nullptr, kFmtState)), EINVAL);
  EXPECT_EQ(modify_format(1, 0, attr), EINVAL);
  EXPECT_EQ(modify_format(1, 1 << 4, attr), EINVAL);
  EXPECT_EQ(why(mrc_ctl_query_ev_fmt_profile(nullptr, 1, &attr, kFmtState)), EINVAL);
  EXPECT_EQ(why(mrc_ctl_query_ev_fmt_profile(ctx(), 1, nullptr, kFmtState)), EINVAL);
  EXPECT_EQ(why(mrc_ctl_query_ev_fmt_profile(ctx(), 1, &attr, 0)), EINVAL);
  EXPECT_EQ(why(mrc_ctl_query_ev_fmt_profile(ctx(), 1, &attr, 1 << 4)), EINVAL);
  EXPECT_EQ(why(mrc_ctl_query_ev_fmt_profile(ctx(), 2, &attr, kFmtMode)), EINVAL);
  attr.ev_fmt_op.op = static_cast<mrc_ctl_ev_fmt_op>(2);
  EXPECT_EQ(why(mrc_ctl_query_ev_fmt_profile(ctx(), 1, &attr, kFmtOp)), EINVAL);
  attr.vendor_cfg[5] = 1;
  EXPECT_EQ(modify_format(1, MRC_CTL_EV_FMT_VENDOR_CFG, attr), EINVAL);
  EXPECT_EQ(version(), before);
}

TEST_F(CtlFormat, ThereAreOnlySoMany) {
  for (std::uint64_t id = 0; id < node::kMaxFormatProfiles; ++id)
    ASSERT_EQ(create_format(id << 40, MRC_CTL_EV_FMT_MODE_STEV), 0);
  EXPECT_EQ(create_format(1, MRC_CTL_EV_FMT_MODE_STEV), E2BIG);
}

}  // namespace
}  // namespace mrc::api
