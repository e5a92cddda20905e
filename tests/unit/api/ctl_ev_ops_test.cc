// Operations on EVs: batches, copies, states and arrays.
#include <cstring>

#include "unit/api/ctl_fixture.h"

namespace mrc::api {
namespace {

using test::replace;
using test::stev;
using test::with_state;

class CtlEvOps : public test::CtlTest {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(explicit_profile(5, {10, 20, 30, 40})); }

  int query_states(std::uint64_t id, Entries& entries) {
    mrc_ctl_ev_profile_attr attr{};
    attr.ev_op.op = MRC_CTL_EV_OP_QUERY_EV_STATE;
    attr.ev_op.entries = entries.data();
    attr.ev_op.entry_count = static_cast<int>(entries.size());
    return why(mrc_ctl_query_ev_profile(ctx(), id, &attr, MRC_CTL_EV_PROFILE_EV_OP));
  }
  mrc_ctl_ev_state state_at(std::size_t index) { return ev_array(5)[index].state; }
};

TEST_F(CtlEvOps, TheArrayShowsEvsInOrder) {
  const Entries entries = ev_array(5);
  ASSERT_EQ(entries.size(), 4u);
  for (std::uint8_t i = 0; i < 4; ++i) {
    EXPECT_EQ(entries[i].ev.val[3], 10 * (i + 1));
    EXPECT_EQ(entries[i].ev.port, i + 1);
    EXPECT_EQ(entries[i].state, MRC_CTL_EV_GOOD);
  }
}

TEST_F(CtlEvOps, AnEntryNeverFilledReadsAsUnpopulated) {
  ASSERT_EQ(create_ev(6, MRC_CTL_EV_MODE_EXP, 1, 2), 0);
  for (const auto& entry : ev_array(6)) {
    const mrc_ctl_ev none = MRC_CTL_EV_UNPOPULATED;
    EXPECT_EQ(std::memcmp(&entry.ev, &none, sizeof none), 0);
    EXPECT_EQ(entry.state, MRC_CTL_EV_UNKNOWN);
  }
  EXPECT_EQ(set_states(6, {with_state(MRC_CTL_EV_UNPOPULATED, MRC_CTL_EV_DENIED)}), ENOENT);
}

TEST_F(CtlEvOps, TooLittleRoomForTheArrayIsTold) {
  Entries entries(3);
  mrc_ctl_ev_profile_attr attr{};
  attr.ev_op.op = MRC_CTL_EV_OP_QUERY_EV_ARRAY;
  attr.ev_op.entries = entries.data();
  attr.ev_op.entry_count = 3;
  EXPECT_EQ(why(mrc_ctl_query_ev_profile(ctx(), 5, &attr, MRC_CTL_EV_PROFILE_EV_OP)), E2BIG);
  EXPECT_EQ(attr.ev_op.entry_count, 4);
  EXPECT_EQ(entries[0].ev.port, 0);
  attr.ev_op.entries = nullptr;
  attr.ev_op.entry_count = 0;
  EXPECT_EQ(why(mrc_ctl_query_ev_profile(ctx(), 5, &attr, MRC_CTL_EV_PROFILE_EV_OP)), E2BIG);
  attr.ev_op.entry_count = -1;
  EXPECT_EQ(why(mrc_ctl_query_ev_profile(ctx(), 5, &attr, MRC_CTL_EV_PROFILE_EV_OP)), EINVAL);
}

TEST_F(CtlEvOps, ReplacesOneOccurrenceOrAll) {
  ASSERT_EQ(replace_evs(5, {replace(stev(20, 2), stev(10, 1)), replace(stev(30, 3), stev(10, 1))}),
            0);
  ASSERT_EQ(replace_evs(5, {replace(stev(10, 1), stev(50, 1))}), 0);
  Entries entries = ev_array(5);
  EXPECT_EQ(entries[0].ev.val[3], 50);
  EXPECT_EQ(entries[1].ev.val[3], 10);
  ASSERT_EQ(replace_evs(5, {replace(stev(10, 1), stev(60, 4), MRC_CTL_EV_OP_F_ALL_COPIES)}), 0);
  entries = ev_array(5);
  EXPECT_EQ(entries[1].ev.val[3], 60);
  EXPECT_EQ(entries[2].ev.val[3], 60);
  EXPECT_EQ(entries[2].ev.port, 4);
}

TEST_F(CtlEvOps, AnEvIsItsValueAndItsPort) {
  EXPECT_EQ(replace_evs(5, {replace(stev(20, 1), stev(50, 1))}), ENOENT);
  EXPECT_EQ(set_states(5, {with_state(stev(20, 3), MRC_CTL_EV_DENIED)}), ENOENT);
}

TEST_F(CtlEvOps, ABatchStopsAtItsFirstFailureAndKeepsWhatCameBefore) {
  EXPECT_EQ(replace_evs(5, {replace(stev(10, 1), stev(11, 1)), replace(stev(99, 1), stev(12, 1)),
                            replace(stev(30, 3), stev(31, 3))}),
            ENOENT);
  const Entries entries = ev_array(5);
  EXPECT_EQ(entries[0].ev.val[3], 11);
  EXPECT_EQ(entries[2].ev.val[3], 30);
  EXPECT_EQ(set_states(5, {with_state(stev(11, 1), MRC_CTL_EV_DENIED),
                           with_state(stev(20, 2), static_cast<mrc_ctl_ev_state>(8)),
                           with_state(stev(30, 3), MRC_CTL_EV_DENIED)}),
            EINVAL);
  EXPECT_EQ(state_at(0), MRC_CTL_EV_DENIED);
  EXPECT_EQ(state_at(2), MRC_CTL_EV_GOOD);
  Entries asked = {with_state(stev(11, 1), MRC_CTL_EV_UNKNOWN),
                   with_state(stev(98, 1), MRC_CTL_EV_UNKNOWN),
                   with_state(stev(30, 3), MRC_CTL_EV_UNKNOWN)};
  EXPECT_EQ(query_states(5, asked), ENOENT);
  EXPECT_EQ(asked[0].state, MRC_CTL_EV_DENIED);
  EXPECT_EQ(asked[2].state, MRC_CTL_EV_UNKNOWN);
}

TEST_F(CtlEvOps, ANewEvMustFitPortsAndFormat) {
  EXPECT_EQ(replace_evs(5, {replace(stev(10, 1), stev(11, 5))}), EINVAL);
  mrc_ctl_ev wide = stev(11, 1);
  wide.val[4] = 1;
  EXPECT_EQ(replace_evs(5, {replace(stev(10, 1), wide)}), EINVAL);
  EXPECT_EQ(replace_evs(5, {replace(stev(10, 1), stev(11, 1), 2)}), EINVAL);
  EXPECT_EQ(replace_evs(5, {replace(stev(10, 1), stev(11, 0))}), EINVAL);
  EXPECT_EQ(ev_array(5)[0].ev.val[3], 10);
}

TEST_F(CtlEvOps, AnEvCanBeTakenOutOnlyOffline) {
  ASSERT_EQ(ev_online(5), 0);
  EXPECT_EQ(replace_evs(5, {replace(stev(10, 1), MRC_CTL_EV_UNPOPULATED)}), EINVAL);
  EXPECT_EQ(replace_evs(5, {replace(stev(10, 1), stev(15, 1))}), 0);
  ASSERT_EQ(set_ev_state(5, MRC_CTL_PROFILE_OFFLINE), 0);
  EXPECT_EQ(replace_evs(5, {replace(stev(15, 1), MRC_CTL_EV_UNPOPULATED)}), 0);
  EXPECT_EQ(set_ev_state(5, MRC_CTL_PROFILE_ONLINE), EINVAL);
}

TEST_F(CtlEvOps, StatesAreSetAndSeenOfflineAndOnline) {
  EXPECT_EQ(set_states(5, {with_state(stev(10, 1), MRC_CTL_EV_DENIED)}), 0);
  ASSERT_EQ(ev_online(5), 0);
  EXPECT_EQ(state_at(0), MRC_CTL_EV_DENIED);
  EXPECT_EQ(set_states(5, {with_state(stev(20, 2), MRC_CTL_EV_ASSUMED_BAD)}), 0);
  EXPECT_EQ(state_at(1), MRC_CTL_EV_ASSUMED_BAD);
  EXPECT_TRUE(node().snapshot()->ev_profiles.at(5).evs[1].denied);
  EXPECT_EQ(set_states(5, {with_state(stev(10, 1), MRC_CTL_EV_GOOD),
                           with_state(stev(20, 2), MRC_CTL_EV_GOOD)}),
            0);
  EXPECT_EQ(state_at(0), MRC_CTL_EV_GOOD);
  EXPECT_EQ(state_at(1), MRC_CTL_EV_GOOD);
  EXPECT_FALSE(node().snapshot()->ev_profiles.at(5).evs[1].denied);
}

TEST_F(CtlEvOps, StatesOfOneCopyOrOfAll) {
  ASSERT_EQ(replace_evs(5, {replace(stev(20, 2), stev(10, 1))}), 0);
  EXPECT_EQ(set_states(5, {with_state(stev(10, 1), MRC_CTL_EV_DENIED)}), 0);
  EXPECT_EQ(state_at(0), MRC_CTL_EV_DENIED);
  EXPECT_EQ(state_at(1), MRC_CTL_EV_GOOD);
  EXPECT_EQ(set_states(5, {with_state(stev(10, 1), MRC_CTL_EV_DENIED, MRC_CTL_EV_OP_F_ALL_COPIES)}),
            0);
  EXPECT_EQ(state_at(1), MRC_CTL_EV_DENIED);
}

TEST_F(CtlEvOps, WhatQueuePairsThinkOfAnEvIsSeen) {
  ASSERT_EQ(ev_online(5), 0);
  const node::ProfileEv ev = node().snapshot()->ev_profiles.at(5).evs[2];
  node().publish_ev_state(5, ev, core::EvState::kSkip);
  EXPECT_EQ(state_at(2), MRC_CTL_EV_GOOD);
  node().publish_ev_state(5, ev, core::EvState::kAssumedBad);
  EXPECT_EQ(state_at(2), MRC_CTL_EV_ASSUMED_BAD);
  Entries asked = {with_state(stev(30, 3), MRC_CTL_EV_UNKNOWN)};
  EXPECT_EQ(query_states(5, asked), 0);
  EXPECT_EQ(asked[0].state, MRC_CTL_EV_ASSUMED_BAD);
  node().publish_ev_state(5, ev, core::EvState::kGood);
  EXPECT_EQ(state_at(2), MRC_CTL_EV_GOOD);
}

TEST_F(CtlEvOps, ARangeIsDeniedInOneBatch) {
  ASSERT_EQ(create_ev(6, MRC_CTL_EV_MODE_GEN, 1, 256,
                      {{.width = 16, .init_val = 0, .min_val = 0, .max_val = 0, .mask = 0xFFF}}),
            0);
  ASSERT_EQ(ev_online(6), 0);
  Entries half;
  for (const auto& entry : ev_array(6)) {
    if (entry.ev.val[0] < 0x80) half.push_back(with_state(entry.ev, MRC_CTL_EV_DENIED));
  }
  ASSERT_FALSE(half.empty());
  EXPECT_EQ(set_states(6, half), 0);
  for (const auto& entry : ev_array(6))
    EXPECT_EQ(entry.state, entry.ev.val[0] < 0x80 ? MRC_CTL_EV_DENIED : MRC_CTL_EV_GOOD);
  // It outlives a stay offline.
  ASSERT_EQ(set_ev_state(6, MRC_CTL_PROFILE_OFFLINE), 0);
  ASSERT_EQ(set_ev_state(6, MRC_CTL_PROFILE_ONLINE), 0);
  EXPECT_EQ(ev_array(6)[0].state,
            ev_array(6)[0].ev.val[0] < 0x80 ? MRC_CTL_EV_DENIED : MRC_CTL_EV_GOOD);
}

TEST_F(CtlEvOps, OperationsInTheWrongPlaceAreRefused) {
  Entries entries = {with_state(stev(10, 1), MRC_CTL_EV_GOOD)};
  EXPECT_EQ(ev_op(5, static_cast<mrc_ctl_ev_op>(4), entries), EINVAL);
  EXPECT_EQ(ev_op(99, MRC_CTL_EV_OP_MODIFY_EV_STATE, entries), EINVAL);
  entries.clear();
  EXPECT_EQ(ev_op(5, MRC_CTL_EV_OP_MODIFY_EV_STATE, entries), EINVAL);
  entries.resize(1'025);
  EXPECT_EQ(ev_op(5, MRC_CTL_EV_OP_MODIFY_EV_STATE, entries), E2BIG);
  EXPECT_EQ(query_states(5, entries), E2BIG);
  mrc_ctl_ev_profile_attr attr{};
  attr.ev_op.op = MRC_CTL_EV_OP_REPLACE_EV;
  attr.ev_op.entries = entries.data();
  attr.ev_op.entry_count = 1;
  EXPECT_EQ(why(mrc_ctl_query_ev_profile(ctx(), 5, &attr, MRC_CTL_EV_PROFILE_EV_OP)), EINVAL);
  entries.resize(1);
  EXPECT_EQ(query_states(99, entries), ENOENT);
}

TEST_F(CtlEvOps, Srv6EvsKeepAddressAndSegment) {
  ASSERT_NO_FATAL_FAILURE(
      online_format(2, MRC_CTL_EV_FMT_MODE_SRV6, {32, 16, 16, 16, 16, 16, 16, 32, 16, 16, 16, 16}));
  ASSERT_EQ(create_ev(6, MRC_CTL_EV_MODE_EXP, 2, 1), 0);
  mrc_ctl_ev ev{};
  for (std::size_t i = 0; i < 32; ++i)
    ev.val[i] = static_cast<std::uint8_t>(i < 28 ? i + 1 : 0);
  ev.port = 2;
  ASSERT_EQ(replace_evs(6, {replace(MRC_CTL_EV_UNPOPULATED, ev)}), 0);
  ASSERT_EQ(ev_online(6), 0);
  EXPECT_EQ(node().snapshot()->ev_profiles.at(6).evs[0].value.bytes[17], 18);
  ASSERT_NO_FATAL_FAILURE(online_format(3, MRC_CTL_EV_FMT_MODE_SRV6, {32, 16, 16}));
  ASSERT_EQ(create_ev(7, MRC_CTL_EV_MODE_EXP, 3, 1), 0);
  EXPECT_EQ(replace_evs(7, {replace(MRC_CTL_EV_UNPOPULATED, ev)}), EINVAL);
}

}  // namespace
}  // namespace mrc::api
