// EV profiles: their life, attributes, fields and generated EVs.
#include <set>

#include "unit/api/ctl_fixture.h"

namespace mrc::api {
namespace {

using test::replace;
using test::stev;
using test::with_state;

class CtlEvProfile : public test::CtlTest {
 protected:
  static constexpr int kFieldsOp = MRC_CTL_EV_PROFILE_EV_FIELDS_OP;
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(online_format(1, MRC_CTL_EV_FMT_MODE_STEV, {16, 16}));
  }
  int set_fields(std::uint64_t id, Fields fields) {
    mrc_ctl_ev_profile_attr attr{};
    put_fields(attr, fields);
    return modify_ev(id, kFieldsOp, attr);
  }
};

// Four values times sixteen, in the low bits of both halves.
const std::vector<mrc_ctl_ev_field> kFields = {
    {.width = 16, .init_val = 0xAB00, .min_val = 0, .max_val = 0, .mask = 0x3},
    {.width = 16, .init_val = 0x1000, .min_val = 0, .max_val = 0, .mask = 0xF}};

TEST_F(CtlEvProfile, AnExplicitOneGoesThroughItsWholeLife) {
  EXPECT_EQ(ev_profile_state(5), MRC_CTL_PROFILE_INIT);
  ASSERT_NO_FATAL_FAILURE(explicit_profile(5, {11, 12, 13, 14}));
  EXPECT_EQ(ev_profile_state(5), MRC_CTL_PROFILE_OFFLINE);
  EXPECT_EQ(ev_online(5), 0);
  EXPECT_EQ(ev_profile_state(5), MRC_CTL_PROFILE_ONLINE);
  EXPECT_EQ(set_ev_state(5, MRC_CTL_PROFILE_OFFLINE), 0);
  EXPECT_EQ(set_ev_state(5, MRC_CTL_PROFILE_ONLINE), 0);
  EXPECT_EQ(set_ev_state(5, MRC_CTL_PROFILE_OFFLINE), 0);
  EXPECT_EQ(set_ev_state(5, MRC_CTL_PROFILE_INIT), 0);
  EXPECT_EQ(ev_profile_state(5), MRC_CTL_PROFILE_INIT);
}

TEST_F(CtlEvProfile, AnyOtherStepIsRefused) {
  EXPECT_EQ(set_ev_state(5, MRC_CTL_PROFILE_INIT), EINVAL);
  EXPECT_EQ(ev_online(5), EINVAL);
  ASSERT_NO_FATAL_FAILURE(explicit_profile(5, {1, 2}));
  EXPECT_EQ(create_ev(5, MRC_CTL_EV_MODE_EXP, 1, 2), EINVAL);
  ASSERT_EQ(ev_online(5), 0);
  EXPECT_EQ(ev_online(5), EINVAL);
  EXPECT_EQ(set_ev_state(5, MRC_CTL_PROFILE_INIT), EINVAL);
  EXPECT_EQ(set_ev_state(5, static_cast<mrc_ctl_profile_state>(7)), EINVAL);
  // Leaving takes nothing else along.
  EXPECT_EQ(set_ev_state(5, MRC_CTL_PROFILE_OFFLINE, kEvState | MRC_CTL_EV_PROFILE_MIN_ACTIVE),
            EINVAL);
  EXPECT_EQ(ev_profile_state(5), MRC_CTL_PROFILE_ONLINE);
}

TEST_F(CtlEvProfile, CreationNeedsModeFormatAndCount) {
  mrc_ctl_ev_profile_attr attr = create_attr(MRC_CTL_EV_MODE_EXP, 1, 8);
  for (const int missing :
       {MRC_CTL_EV_PROFILE_MODE, MRC_CTL_EV_PROFILE_FMT_ID, MRC_CTL_EV_PROFILE_COUNT})
    EXPECT_EQ(modify_ev(5, kCreate & ~missing, attr), EINVAL) << missing;
  attr.ev_mode = static_cast<mrc_ctl_ev_mode>(3);
  EXPECT_EQ(modify_ev(5, kCreate, attr), EINVAL);
  EXPECT_EQ(create_ev(5, MRC_CTL_EV_MODE_EXP, 99, 8), EINVAL);
  EXPECT_EQ(create_ev(5, MRC_CTL_EV_MODE_EXP, 1, 0), EINVAL);
  EXPECT_EQ(create_ev(5, MRC_CTL_EV_MODE_EXP, 1, 1'025), E2BIG);
  EXPECT_EQ(create_ev(5, MRC_CTL_EV_MODE_EXP, 1, 0xFFFF'FFFF), E2BIG);
  EXPECT_EQ(create_ev(5, MRC_CTL_EV_MODE_GEN, 1, 8), EINVAL);
  EXPECT_EQ(ev_profile_state(5), MRC_CTL_PROFILE_INIT);
}

TEST_F(CtlEvProfile, WhatWasChosenAtCreationStaysOnline) {
  ASSERT_NO_FATAL_FAILURE(explicit_profile(5, {1, 2}));
  ASSERT_EQ(ev_online(5), 0);
  mrc_ctl_ev_profile_attr attr = create_attr(MRC_CTL_EV_MODE_EXP, 1, 2);
  const int chosen = kCreate & ~kEvState;
  EXPECT_EQ(modify_ev(5, chosen, attr), 0);
  attr = create_attr(MRC_CTL_EV_MODE_AUTO, 1, 2);
  EXPECT_EQ(modify_ev(5, chosen, attr), EINVAL);
  attr = create_attr(MRC_CTL_EV_MODE_EXP, 2, 2);
  EXPECT_EQ(modify_ev(5, chosen, attr), EINVAL);
  attr = create_attr(MRC_CTL_EV_MODE_EXP, 1, 4);
  EXPECT_EQ(modify_ev(5, chosen, attr), EINVAL);
}

TEST_F(CtlEvProfile, GoingOnlineNeedsMinimumAndEventMask) {
  ASSERT_NO_FATAL_FAILURE(explicit_profile(5, {1, 2, 3, 4}));
  EXPECT_EQ(set_ev_state(5, MRC_CTL_PROFILE_ONLINE), EINVAL);
  EXPECT_EQ(set_ev_state(5, MRC_CTL_PROFILE_ONLINE, kOnline & ~MRC_CTL_EV_PROFILE_MIN_ACTIVE),
            EINVAL);
  EXPECT_EQ(set_ev_state(5, MRC_CTL_PROFILE_ONLINE, kOnline & ~MRC_CTL_EV_PROFILE_EVENT_MASK),
            EINVAL);
  mrc_ctl_ev_profile_attr attr{};
  attr.ev_min_active = 5;
  EXPECT_EQ(modify_ev(5, MRC_CTL_EV_PROFILE_MIN_ACTIVE, attr), EINVAL);
  attr.ev_event_mask = MRC_CTL_EV_DENIED;
  EXPECT_EQ(modify_ev(5, MRC_CTL_EV_PROFILE_EVENT_MASK, attr), EINVAL);
  attr.ev_event_mask = MRC_CTL_EV_UNKNOWN;
  EXPECT_EQ(modify_ev(5, MRC_CTL_EV_PROFILE_EVENT_MASK, attr), EINVAL);
  attr.ev_min_active = 4;
  attr.ev_event_mask = 0;
  EXPECT_EQ(modify_ev(5, MRC_CTL_EV_PROFILE_MIN_ACTIVE | MRC_CTL_EV_PROFILE_EVENT_MASK, attr), 0);
  EXPECT_EQ(set_ev_state(5, MRC_CTL_PROFILE_ONLINE), 0);
}

TEST_F(CtlEvProfile, AnExplicitOneNeedsEveryEntryToGoOnline) {
  ASSERT_EQ(create_ev(5, MRC_CTL_EV_MODE_EXP, 1, 3), 0);
  EXPECT_EQ(ev_online(5), EINVAL);
  ASSERT_EQ(replace_evs(5, {replace(MRC_CTL_EV_UNPOPULATED, stev(1, 1)),
                            replace(MRC_CTL_EV_UNPOPULATED, stev(2, 2))}),
            0);
  EXPECT_EQ(ev_online(5), EINVAL);
  ASSERT_EQ(replace_evs(5, {replace(MRC_CTL_EV_UNPOPULATED, stev(3, 3))}), 0);
  EXPECT_EQ(ev_online(5), 0);
}

TEST_F(CtlEvProfile, TheLastEntriesMayComeWithGoingOnline) {
  ASSERT_EQ(create_ev(5, MRC_CTL_EV_MODE_EXP, 1, 1), 0);
  Entries entries = {replace(MRC_CTL_EV_UNPOPULATED, stev(1, 9))};
  mrc_ctl_ev_profile_attr attr{};
  attr.profile_state = MRC_CTL_PROFILE_ONLINE;
  attr.ev_op.op = MRC_CTL_EV_OP_REPLACE_EV;
  attr.ev_op.entries = entries.data();
  attr.ev_op.entry_count = 1;
  EXPECT_EQ(modify_ev(5, kOnline | MRC_CTL_EV_PROFILE_EV_OP, attr), EINVAL);
  EXPECT_EQ(ev_profile_state(5), MRC_CTL_PROFILE_OFFLINE);
  entries[0].ev_new.port = 1;
  EXPECT_EQ(modify_ev(5, kOnline | MRC_CTL_EV_PROFILE_EV_OP, attr), 0);
  EXPECT_EQ(ev_profile_state(5), MRC_CTL_PROFILE_ONLINE);
}

TEST_F(CtlEvProfile, TheCountOfAnExplicitOneIsRoundedUpAndReadBack) {
  setenv("MRC_EV_COUNT_ALIGN", "8", 1);
  mrc_ctl_ev_profile_attr attr = create_attr(MRC_CTL_EV_MODE_EXP, 1, 9);
  EXPECT_EQ(modify_ev(5, kCreate, attr), 0);
  EXPECT_EQ(attr.ev_count, 16u);
  attr = {};
  EXPECT_EQ(why(mrc_ctl_query_ev_profile(ctx(), 5, &attr, MRC_CTL_EV_PROFILE_COUNT)), 0);
  EXPECT_EQ(attr.ev_count, 16u);
  mrc_ctl_device_attr device{};
  int supported = 0;
  EXPECT_EQ(why(mrc_ctl_query_device_ex(nullptr, ctx(), &device, &supported)), 0);
  EXPECT_EQ(device.ev.ev_count_align, 8u);
  setenv("MRC_EV_COUNT_ALIGN", "65", 1);
  EXPECT_EQ(why(mrc_ctl_query_device_ex(nullptr, ctx(), &device, &supported)), 0);
  EXPECT_EQ(device.ev.ev_count_align, 1u);
  unsetenv("MRC_EV_COUNT_ALIGN");
}

TEST_F(CtlEvProfile, EvsOfAllProfilesTogetherAreLimited) {
  for (std::uint64_t id = 1; id <= 64; ++id)
    ASSERT_EQ(create_ev(id, MRC_CTL_EV_MODE_EXP, 1, 1'024), 0);
  mrc_ctl_device_attr device{};
  int supported = 0;
  ASSERT_EQ(why(mrc_ctl_query_device_ex(nullptr, ctx(), &device, &supported)), 0);
  EXPECT_EQ(device.ev.ev_free_count, 0u);
  EXPECT_EQ(create_ev(100, MRC_CTL_EV_MODE_EXP, 1, 1), E2BIG);
  ASSERT_EQ(set_ev_state(64, MRC_CTL_PROFILE_INIT), 0);
  EXPECT_EQ(create_ev(100, MRC_CTL_EV_MODE_EXP, 1, 1), 0);
}

TEST_F(CtlEvProfile, UsersKeepItOnline) {
  ASSERT_NO_FATAL_FAILURE(explicit_profile(5, {1, 2}));
  ASSERT_EQ(ev_online(5), 0);
  ASSERT_EQ(node().add_user(node::ProfileKind::kEv, 5), 0);
  EXPECT_EQ(set_ev_state(5, MRC_CTL_PROFILE_OFFLINE), EBUSY);
  EXPECT_EQ(ev_profile_state(5), MRC_CTL_PROFILE_ONLINE);
  node().remove_user(node::ProfileKind::kEv, 5);
  EXPECT_EQ(set_ev_state(5, MRC_CTL_PROFILE_OFFLINE), 0);
}

TEST_F(CtlEvProfile, GeneratedEvsDifferFollowTheFieldsAndStayTheSame) {
  ASSERT_EQ(create_ev(5, MRC_CTL_EV_MODE_GEN, 1, 32, kFields), 0);
  ASSERT_EQ(ev_online(5), 0);
  const auto snapshot = node().snapshot();
  std::set<std::uint32_t> seen;
  for (const node::ProfileEv& ev : snapshot->ev_profiles.at(5).evs) {
    const std::uint32_t value = wire::ev_entropy(wire::EvKind::kStructured, ev.value);
    EXPECT_EQ(value & ~0x0003'000Fu, 0xAB00'1000u);
    EXPECT_TRUE(seen.insert(value).second);
    EXPECT_GE(static_cast<unsigned>(ev.port), 1u);
    EXPECT_LE(static_cast<unsigned>(ev.port), 4u);
  }
  ASSERT_EQ(set_ev_state(5, MRC_CTL_PROFILE_OFFLINE), 0);
  ASSERT_EQ(set_ev_state(5, MRC_CTL_PROFILE_ONLINE), 0);
  EXPECT_EQ(node().snapshot()->ev_profiles.at(5).evs, snapshot->ev_profiles.at(5).evs);
}

TEST_F(CtlEvProfile, GeneratedEvsStayWithinTheirLimitsAndRepeatOnlyWhenTheyMust) {
  const Fields fields = {{.width = 16, .init_val = 0, .min_val = 5, .max_val = 6, .mask = 0xFF}};
  ASSERT_EQ(create_ev(5, MRC_CTL_EV_MODE_GEN, 1, 8, fields), 0);
  ASSERT_EQ(ev_online(5), 0);
  std::set<std::pair<unsigned, unsigned>> seen;
  for (const auto& entry : ev_array(5)) {
    EXPECT_TRUE(entry.ev.val[0] == 5 || entry.ev.val[0] == 6);
    EXPECT_TRUE(seen.insert({entry.ev.port, entry.ev.val[0]}).second);
  }
  EXPECT_EQ(seen.size(), 8u);
}

TEST_F(CtlEvProfile, AutoNeedsOnlyItsMode) {
  mrc_ctl_ev_profile_attr attr = create_attr(MRC_CTL_EV_MODE_AUTO, 0, 0);
  ASSERT_EQ(modify_ev(5, kEvState | MRC_CTL_EV_PROFILE_MODE, attr), 0);
  EXPECT_EQ(set_fields(5, kFields), EINVAL);
  ASSERT_EQ(ev_online(5), 0);
  EXPECT_EQ(ev_array(5).size(), 32u);
  EXPECT_EQ(replace_evs(5, {replace(ev_array(5)[0].ev, stev(1, 1))}), EINVAL);
  EXPECT_EQ(set_states(5, {with_state(ev_array(5)[0].ev, MRC_CTL_EV_DENIED)}), 0);
}

TEST_F(CtlEvProfile, WithFieldsTheApiSpeaksInCompactEvs) {
  ASSERT_EQ(create_ev(5, MRC_CTL_EV_MODE_EXP, 1, 1, kFields), 0);
  EXPECT_EQ(replace_evs(5, {replace(MRC_CTL_EV_UNPOPULATED, stev(0xFF00'0000, 1))}), EINVAL);
  // Two bits for the first field, four for the second.
  ASSERT_EQ(replace_evs(5, {replace(MRC_CTL_EV_UNPOPULATED, stev(0b10'0110u << 26, 1))}), 0);
  ASSERT_EQ(ev_online(5), 0);
  const node::ProfileEv ev = node().snapshot()->ev_profiles.at(5).evs[0];
  EXPECT_EQ(wire::ev_entropy(wire::EvKind::kStructured, ev.value), 0xAB02'1006u);
  EXPECT_EQ(ev_array(5)[0].ev.val[0], 0b1001'1000);
}

TEST_F(CtlEvProfile, FieldsAreCheckedAgainstTheFormat) {
  ASSERT_EQ(create_ev(5, MRC_CTL_EV_MODE_GEN, 1, 4, kFields), 0);
  const mrc_ctl_ev_field open{.width = 16, .init_val = 0, .min_val = 0, .max_val = 0, .mask = 1};
  EXPECT_EQ(set_fields(5, {open, open, open}), EINVAL);
  auto changed = open;
  changed.width = 17;
  EXPECT_EQ(set_fields(5, {changed}), EINVAL);
  changed = open;
  changed.width = 0;
  EXPECT_EQ(set_fields(5, {changed}), EINVAL);
  changed = open;
  changed.init_val = 0x1'0000;
  EXPECT_EQ(set_fields(5, {changed}), EINVAL);
  changed = open;
  changed.mask = 0x1'0000;
  EXPECT_EQ(set_fields(5, {changed}), EINVAL);
  changed = open;
  changed.max_val = 2;
  EXPECT_EQ(set_fields(5, {changed}), EINVAL);
  changed = open;
  changed.min_val = 1;
  EXPECT_EQ(set_fields(5, {changed}), EINVAL);
  changed = open;
  changed.mask = 0;
  changed.max_val = 1;
  EXPECT_EQ(set_fields(5, {changed}), EINVAL);
  EXPECT_EQ(set_fields(5, Fields{}), EINVAL);
  EXPECT_EQ(set_fields(5, Fields(257, open)), EINVAL);
  EXPECT_EQ(set_fields(5, {open, open}), 0);
}

TEST_F(CtlEvProfile, FieldsAreReadBackAndTooLittleRoomIsTold) {
  ASSERT_EQ(create_ev(5, MRC_CTL_EV_MODE_GEN, 1, 4, kFields), 0);
  mrc_ctl_ev_field fields[2] = {};
  mrc_ctl_ev_profile_attr attr{};
  attr.ev_fields_op.op = MRC_CTL_EV_FIELDS_OP_QUERY_FIELDS;
  attr.ev_fields_op.fields = fields;
  attr.ev_fields_op.field_count = 1;
  EXPECT_EQ(why(mrc_ctl_query_ev_profile(ctx(), 5, &attr, kFieldsOp)), E2BIG);
  EXPECT_EQ(attr.ev_fields_op.field_count, 2);
  EXPECT_EQ(why(mrc_ctl_query_ev_profile(ctx(), 5, &attr, kFieldsOp)), 0);
  EXPECT_EQ(fields[1].init_val, 0x1000u);
  EXPECT_EQ(fields[1].mask, 0xFu);
  attr.ev_fields_op.op = MRC_CTL_EV_FIELDS_OP_MODIFY_FIELDS;
  EXPECT_EQ(why(mrc_ctl_query_ev_profile(ctx(), 5, &attr, kFieldsOp)), EINVAL);
}

TEST_F(CtlEvProfile, EventMaskAndFieldsChangeOnlineTheMinimumDoesNot) {
  ASSERT_EQ(create_ev(5, MRC_CTL_EV_MODE_GEN, 1, 4, kFields), 0);
  ASSERT_EQ(ev_online(5), 0);
  mrc_ctl_ev_profile_attr attr{};
  attr.ev_min_active = 2;
  EXPECT_EQ(modify_ev(5, MRC_CTL_EV_PROFILE_MIN_ACTIVE, attr), EINVAL);
  attr.ev_event_mask = MRC_CTL_EV_GOOD;
  EXPECT_EQ(modify_ev(5, MRC_CTL_EV_PROFILE_EVENT_MASK, attr), 0);
  Fields fields = kFields;
  fields[0].init_val = 0xCD00;
  EXPECT_EQ(set_fields(5, fields), 0);
  const auto snapshot = node().snapshot();
  EXPECT_EQ(snapshot->ev_profiles.at(5).event_mask, 1u);
  EXPECT_EQ(snapshot->ev_profiles.at(5).evs[0].value.bytes[0], 0xCD);
}

TEST_F(CtlEvProfile, AllAttributesAreReadBack) {
  ASSERT_NO_FATAL_FAILURE(explicit_profile(5, {1, 2, 3, 4}));
  ASSERT_EQ(ev_online(5), 0);
  mrc_ctl_ev_profile_attr attr{};
  const int all = kCreate | kOnline | MRC_CTL_EV_PROFILE_CUR_STATE | MRC_CTL_EV_PROFILE_VENDOR_CFG;
  attr.vendor_cfg[1] = 1;
  ASSERT_EQ(why(mrc_ctl_query_ev_profile(ctx(), 5, &attr, all)), 0);
  EXPECT_EQ(attr.profile_state, MRC_CTL_PROFILE_ONLINE);
  EXPECT_EQ(attr.cur_profile_state, MRC_CTL_PROFILE_ONLINE);
  EXPECT_EQ(attr.ev_mode, MRC_CTL_EV_MODE_EXP);
  EXPECT_EQ(attr.ev_fmt_profile_id, 1u);
  EXPECT_EQ(attr.ev_count, 4u);
  EXPECT_EQ(attr.ev_min_active, 1u);
  EXPECT_EQ(attr.ev_event_mask, 3);
  EXPECT_EQ(attr.vendor_cfg[1], 0);
}

TEST_F(CtlEvProfile, WrongArgumentsChangeNothing) {
  ASSERT_NO_FATAL_FAILURE(explicit_profile(5, {1, 2}));
  const std::uint64_t before = version();
  mrc_ctl_ev_profile_attr attr{};
  EXPECT_EQ(why(mrc_ctl_modify_ev_profile(nullptr, 5, &attr, kEvState)), EINVAL);
  EXPECT_EQ(why(mrc_ctl_modify_ev_profile(ctx(), 5, nullptr, kEvState)), EINVAL);
  EXPECT_EQ(modify_ev(5, 0, attr), EINVAL);
  EXPECT_EQ(modify_ev(5, 1 << 9, attr), EINVAL);
  EXPECT_EQ(modify_ev(5, MRC_CTL_EV_PROFILE_EV_OP | kFieldsOp, attr), EINVAL);
  EXPECT_EQ(modify_ev(5, MRC_CTL_EV_PROFILE_EV_OP, attr), EINVAL);
  EXPECT_EQ(modify_ev(5, kFieldsOp, attr), EINVAL);
  EXPECT_EQ(modify_ev(6, MRC_CTL_EV_PROFILE_EVENT_MASK, attr), EINVAL);
  EXPECT_EQ(why(mrc_ctl_query_ev_profile(nullptr, 5, &attr, kEvState)), EINVAL);
  EXPECT_EQ(why(mrc_ctl_query_ev_profile(ctx(), 5, nullptr, kEvState)), EINVAL);
  EXPECT_EQ(why(mrc_ctl_query_ev_profile(ctx(), 5, &attr, 0)), EINVAL);
  EXPECT_EQ(why(mrc_ctl_query_ev_profile(ctx(), 5, &attr, MRC_CTL_EV_PROFILE_EV_OP | kFieldsOp)),
            EINVAL);
  EXPECT_EQ(why(mrc_ctl_query_ev_profile(ctx(), 6, &attr, MRC_CTL_EV_PROFILE_MODE)), EINVAL);
  attr.vendor_cfg[127] = 9;
  EXPECT_EQ(modify_ev(5, MRC_CTL_EV_PROFILE_VENDOR_CFG, attr), EINVAL);
  EXPECT_EQ(version(), before);
}

}  // namespace
}  // namespace mrc::api
