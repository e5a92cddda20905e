// The controller half of the API as OCP's header and examples have it. Written from the contract,
// not from the code: ids, counts and values are those of the published walk-throughs.
#include <chrono>
#include <cstring>

#include "unit/api/ctl_fixture.h"

namespace mrc::api {
namespace {

// The examples copy a number of the host, so its low byte comes first.
mrc_ctl_ev host_order_ev(std::uint32_t value, std::uint8_t port) {
  mrc_ctl_ev ev{};
  std::memcpy(ev.val, &value, sizeof value);
  ev.port = port;
  return ev;
}

class CtlContract : public test::CtlTest {
 protected:
  static constexpr int kAsk = MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE |
                              MRC_CTL_EV_PROFILE_FMT_ID | MRC_CTL_EV_PROFILE_COUNT |
                              MRC_CTL_EV_PROFILE_MIN_ACTIVE | MRC_CTL_EV_PROFILE_EVENT_MASK;
  static constexpr int kBoth = MRC_CTL_EV_GOOD | MRC_CTL_EV_ASSUMED_BAD;

  // A profile made OFFLINE in one call.
  int make(std::uint64_t id, mrc_ctl_ev_mode mode, std::uint64_t format, std::uint32_t count,
           Fields fields = {}) {
    mrc_ctl_ev_profile_attr attr = create_attr(mode, format, count);
    attr.ev_min_active = count / 4;
    attr.ev_event_mask = kBoth;
    put_fields(attr, fields);
    const int with_fields = fields.empty() ? 0 : MRC_CTL_EV_PROFILE_EV_FIELDS_OP;
    return modify_ev(
        id, kCreate | MRC_CTL_EV_PROFILE_MIN_ACTIVE | MRC_CTL_EV_PROFILE_EVENT_MASK | with_fields,
        attr);
  }
  mrc_ctl_ev_profile_attr ask(std::uint64_t id, int mask = kAsk) {
    mrc_ctl_ev_profile_attr attr{};
    EXPECT_EQ(mrc_ctl_query_ev_profile(ctx(), id, &attr, mask), 0);
    return attr;
  }
};

TEST_F(CtlContract, ADeviceSpeaksVersionOneAndCountsPortsFromOne) {
  mrc_ctl_device_attr attr{};
  int supported = 0;
  ASSERT_EQ(mrc_ctl_query_device_ex(nullptr, ctx(), &attr, &supported), 0);
  EXPECT_EQ(attr.mrc_ctl_protocol_version, 1U);
  EXPECT_EQ(attr.phy_port_mask, 0x1EU) << "bit n is port n";
}

TEST_F(CtlContract, CallsReportByMinusOneAndLeaveErrnoAloneOnSuccess) {
  mrc_ctl_ev_fmt_profile_attr format{};
  format.profile_state = MRC_CTL_PROFILE_ONLINE;
  errno = 0;
  EXPECT_EQ(mrc_ctl_modify_ev_fmt_profile(ctx(), 13, &format, kFmtState), -1);
  EXPECT_EQ(errno, EINVAL);
  format.profile_state = MRC_CTL_PROFILE_OFFLINE;
  format.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_STEV;
  errno = 4711;
  EXPECT_EQ(mrc_ctl_modify_ev_fmt_profile(ctx(), 13, &format, kFmtState | kFmtMode), 0);
  EXPECT_EQ(errno, 4711);
  mrc_cq* events = mrc_ctl_create_ev_event_cq(ctx(), 16, nullptr, nullptr, 0);
  ASSERT_NE(events, nullptr);
  mrc_ctl_ev_event event{};
  EXPECT_EQ(mrc_ctl_poll_ev_event(events, -1, &event), -EINVAL) << "this one by its value";
  ibv_wc wc{};
  EXPECT_EQ(mrc_poll_cq(events, 1, &wc), -1) << "and it is no queue for work";
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(mrc_destroy_cq(events), 0);
}

// Scenario: explicit structured EVs.
TEST_F(CtlContract, ExplicitStructuredEvs) {
  mrc_ctl_device_attr device{};
  int supported = 0;
  ASSERT_EQ(mrc_ctl_query_device_ex(nullptr, ctx(), &device, &supported), 0);
  const std::uint32_t count =
      device.ev.ev_max_count_profile / device.ev.ev_count_align * device.ev.ev_count_align;
  ASSERT_NO_FATAL_FAILURE(online_format(13, MRC_CTL_EV_FMT_MODE_STEV, {16, 16}));
  ASSERT_EQ(make(1, MRC_CTL_EV_MODE_EXP, 13, count), 0);
  EXPECT_EQ(set_ev_state(1, MRC_CTL_PROFILE_ONLINE), EINVAL) << "not filled yet";
  for (std::uint32_t i = 0; i < count; ++i) {
    mrc_ctl_ev_op_entry entry =
        test::replace(MRC_CTL_EV_UNPOPULATED, host_order_ev(i << 16 | i, 1));
    entry.state = MRC_CTL_EV_GOOD;
    ASSERT_EQ(replace_evs(1, {entry}), 0) << i;
  }
  ASSERT_EQ(set_ev_state(1, MRC_CTL_PROFILE_ONLINE), 0);
  for (std::uint32_t i = 13; i < 43; ++i)
    ASSERT_EQ(set_states(1, {test::with_state(host_order_ev(i << 16 | i, 1), MRC_CTL_EV_DENIED)}),
              0);
  EXPECT_EQ(ev_array(1)[13].state, MRC_CTL_EV_DENIED);
  EXPECT_EQ(ev_array(1)[43].state, MRC_CTL_EV_GOOD);
  for (std::uint32_t i = 13; i < 43; ++i) {
    mrc_ctl_ev_op_entry entry =
        test::replace(host_order_ev(i << 16 | i, 1), host_order_ev((i + 128) << 16 | (i + 128), 1));
    entry.state = MRC_CTL_EV_GOOD;
    ASSERT_EQ(replace_evs(1, {entry}), 0) << "online, as the device offers; copies are allowed";
  }
  const mrc_ctl_ev_profile_attr now = ask(1);
  EXPECT_EQ(now.profile_state, MRC_CTL_PROFILE_ONLINE);
  EXPECT_EQ(now.ev_mode, MRC_CTL_EV_MODE_EXP);
  EXPECT_EQ(now.ev_fmt_profile_id, 13U);
  EXPECT_EQ(now.ev_count, count);
  EXPECT_EQ(now.ev_min_active, count / 4);
  EXPECT_EQ(now.ev_event_mask, kBoth);
  EXPECT_EQ(ev_array(1)[13].state, MRC_CTL_EV_GOOD) << "the new EV has the state of its entry";
}

// Scenario: generated structured EVs.
TEST_F(CtlContract, GeneratedStructuredEvs) {
  ASSERT_NO_FATAL_FAILURE(online_format(13, MRC_CTL_EV_FMT_MODE_STEV, {8, 4, 4}));
  const Fields fields = {{8, 0, 0, 255, 0xff}, {4, 0, 0, 15, 0xf}, {4, 0, 0, 15, 0xf}};
  ASSERT_EQ(make(1, MRC_CTL_EV_MODE_GEN, 13, 1'024, fields), 0);
  ASSERT_EQ(set_ev_state(1, MRC_CTL_PROFILE_ONLINE), 0);
  std::vector<mrc_ctl_ev_field> found(10);
  mrc_ctl_ev_profile_attr attr{};
  attr.ev_fields_op.op = MRC_CTL_EV_FIELDS_OP_QUERY_FIELDS;
  attr.ev_fields_op.fields = found.data();
  attr.ev_fields_op.field_count = 10;
  ASSERT_EQ(mrc_ctl_query_ev_profile(ctx(), 1, &attr, MRC_CTL_EV_PROFILE_EV_FIELDS_OP), 0);
  ASSERT_EQ(attr.ev_fields_op.field_count, 3);
  EXPECT_EQ(found[0].max_val, 255U);
  EXPECT_EQ(found[2].mask, 0xfU);
  Entries denied;
  for (const auto& entry : ev_array(1)) {
    if (entry.ev.val[0] >= 180) denied.push_back(test::with_state(entry.ev, MRC_CTL_EV_DENIED));
  }
  ASSERT_FALSE(denied.empty());
  EXPECT_EQ(set_states(1, denied), 0);
}

TEST_F(CtlContract, ReplacedEvsTakeTheStateOfTheirEntry) {
  ASSERT_NO_FATAL_FAILURE(explicit_profile(5, {10, 20, 30}));
  const auto replace_with = [&](std::uint32_t value, int state) {
    mrc_ctl_ev_op_entry entry = test::replace(ev_array(5)[1].ev, test::stev(value, 2));
    entry.state = static_cast<mrc_ctl_ev_state>(state);
    return replace_evs(5, {entry});
  };
  EXPECT_EQ(replace_with(21, MRC_CTL_EV_DENIED), 0);
  EXPECT_EQ(ev_array(5)[1].state, MRC_CTL_EV_DENIED);
  EXPECT_EQ(replace_with(22, MRC_CTL_EV_ASSUMED_BAD), 0);
  EXPECT_EQ(ev_array(5)[1].state, MRC_CTL_EV_ASSUMED_BAD);
  EXPECT_EQ(replace_with(23, 0), 0) << "programs made from the examples leave it out";
  EXPECT_EQ(ev_array(5)[1].state, MRC_CTL_EV_GOOD);
  EXPECT_EQ(replace_with(24, 3), EINVAL);
  EXPECT_EQ(replace_with(24, MRC_CTL_EV_UNKNOWN), EINVAL);
  EXPECT_EQ(ev_array(5)[1].ev.val[3], 23) << "a refused entry changes nothing";
}

TEST_F(CtlContract, OfflineModeFormatAndCountChangeAndMakeTheArrayAnew) {
  ASSERT_NO_FATAL_FAILURE(explicit_profile(5, {1, 2, 3}));
  ASSERT_NO_FATAL_FAILURE(online_format(2, MRC_CTL_EV_FMT_MODE_STEV, {32}));
  mrc_ctl_ev_profile_attr attr{};
  attr.ev_count = 2;
  ASSERT_EQ(modify_ev(5, MRC_CTL_EV_PROFILE_COUNT, attr), 0);
  ASSERT_EQ(ev_array(5).size(), 2U);
  EXPECT_EQ(ev_array(5)[1].ev.val[3], 2) << "the leading ones stay";
  attr.ev_count = 4;
  ASSERT_EQ(modify_ev(5, MRC_CTL_EV_PROFILE_COUNT, attr), 0);
  EXPECT_EQ(ev_array(5)[1].ev.val[3], 2);
  EXPECT_EQ(ev_array(5)[3].state, MRC_CTL_EV_UNKNOWN) << "unpopulated";
  attr.ev_fmt_profile_id = 2;
  ASSERT_EQ(modify_ev(5, MRC_CTL_EV_PROFILE_FMT_ID, attr), 0);
  for (const auto& entry : ev_array(5))
    EXPECT_EQ(entry.state, MRC_CTL_EV_UNKNOWN) << "another format";
  attr.ev_mode = MRC_CTL_EV_MODE_AUTO;
  ASSERT_EQ(modify_ev(5, MRC_CTL_EV_PROFILE_MODE, attr), 0);
  ASSERT_EQ(ev_online(5), 0);
  EXPECT_EQ(ask(5).ev_mode, MRC_CTL_EV_MODE_AUTO);
  EXPECT_EQ(ev_array(5).size(), 4U);
  attr.ev_mode = MRC_CTL_EV_MODE_EXP;
  EXPECT_EQ(modify_ev(5, MRC_CTL_EV_PROFILE_MODE, attr), EINVAL) << "online";
}

TEST_F(CtlContract, TheMinimumMustFitTheNewCount) {
  ASSERT_NO_FATAL_FAILURE(explicit_profile(5, {1, 2, 3, 4}));
  mrc_ctl_ev_profile_attr attr{};
  attr.ev_min_active = 4;
  ASSERT_EQ(modify_ev(5, MRC_CTL_EV_PROFILE_MIN_ACTIVE, attr), 0);
  attr.ev_count = 3;
  EXPECT_EQ(modify_ev(5, MRC_CTL_EV_PROFILE_COUNT, attr), EINVAL);
  EXPECT_EQ(ev_array(5).size(), 4U);
  attr.ev_min_active = 3;
  EXPECT_EQ(modify_ev(5, MRC_CTL_EV_PROFILE_COUNT | MRC_CTL_EV_PROFILE_MIN_ACTIVE, attr), 0);
}

TEST_F(CtlContract, AGeneratedProfileNeedsFieldsHoweverItCameToBeOne) {
  ASSERT_NO_FATAL_FAILURE(explicit_profile(5, {1, 2}));
  mrc_ctl_ev_profile_attr attr{};
  attr.ev_mode = MRC_CTL_EV_MODE_GEN;
  ASSERT_EQ(modify_ev(5, MRC_CTL_EV_PROFILE_MODE, attr), 0);
  EXPECT_EQ(ev_online(5), EINVAL);
}

TEST_F(CtlContract, OfflineTheModeOfAFormatChanges) {
  ASSERT_EQ(create_format(7, MRC_CTL_EV_FMT_MODE_STEV), 0);
  ASSERT_EQ(set_format_fields(7, {8, 8}), 0);
  mrc_ctl_ev_fmt_profile_attr attr{};
  attr.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_UDP;
  ASSERT_EQ(modify_format(7, kFmtMode, attr), 0);
  ASSERT_EQ(set_format_state(7, MRC_CTL_PROFILE_ONLINE), 0) << "16 bits fit a UDP port as well";
  ASSERT_EQ(mrc_ctl_query_ev_fmt_profile(ctx(), 7, &attr, kFmtMode), 0);
  EXPECT_EQ(attr.ev_fmt_mode, MRC_CTL_EV_FMT_MODE_UDP);
  attr.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_STEV;
  EXPECT_EQ(modify_format(7, kFmtMode, attr), EINVAL) << "online";
  ASSERT_EQ(create_format(8, MRC_CTL_EV_FMT_MODE_STEV), 0);
  ASSERT_EQ(set_format_fields(8, {16, 16}), 0);
  attr.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_UDP;
  ASSERT_EQ(modify_format(8, kFmtMode, attr), 0);
  EXPECT_EQ(set_format_state(8, MRC_CTL_PROFILE_ONLINE), EINVAL) << "32 bits do not";
  EXPECT_EQ(set_format_fields(8, {16}, kFmtState), 0);
}

// The header lists the query among what a modify may carry.
TEST_F(CtlContract, AModifyAnswersQueries) {
  ASSERT_NO_FATAL_FAILURE(online_format(13, MRC_CTL_EV_FMT_MODE_STEV, {16, 16}));
  mrc_ctl_ev_fmt_field found[4] = {};
  mrc_ctl_ev_fmt_profile_attr format{};
  format.ev_fmt_op.op = MRC_CTL_EV_FMT_OP_QUERY_FIELDS;
  format.ev_fmt_op.fmt_fields = found;
  format.ev_fmt_op.fmt_field_count = 4;
  ASSERT_EQ(mrc_ctl_modify_ev_fmt_profile(ctx(), 13, &format, kFmtOp), 0);
  EXPECT_EQ(format.ev_fmt_op.fmt_field_count, 2);
  EXPECT_EQ(found[1].width, 16);
  format.ev_fmt_op.fmt_field_count = 1;
  EXPECT_EQ(why(mrc_ctl_modify_ev_fmt_profile(ctx(), 13, &format, kFmtOp)), E2BIG);
  EXPECT_EQ(format.ev_fmt_op.fmt_field_count, 2);

  ASSERT_NO_FATAL_FAILURE(explicit_profile(5, {10, 20}));
  Entries entries(2);
  mrc_ctl_ev_profile_attr attr{};
  attr.ev_op.op = MRC_CTL_EV_OP_QUERY_EV_ARRAY;
  attr.ev_op.entries = entries.data();
  attr.ev_op.entry_count = 2;
  ASSERT_EQ(modify_ev(5, MRC_CTL_EV_PROFILE_EV_OP, attr), 0);
  EXPECT_EQ(entries[1].ev.val[3], 20);
  EXPECT_EQ(entries[1].state, MRC_CTL_EV_GOOD);
  attr = {};
  attr.profile_state = MRC_CTL_PROFILE_ONLINE;
  attr.ev_min_active = 1;
  Entries room(1);
  attr.ev_op.op = MRC_CTL_EV_OP_QUERY_EV_ARRAY;
  attr.ev_op.entries = room.data();
  attr.ev_op.entry_count = 1;
  EXPECT_EQ(modify_ev(5, kOnline | MRC_CTL_EV_PROFILE_EV_OP, attr), E2BIG);
  EXPECT_EQ(attr.ev_op.entry_count, 2);
  EXPECT_EQ(ev_profile_state(5), MRC_CTL_PROFILE_OFFLINE) << "a refused call changes nothing";
}

// Scenario: events that found no room.
TEST_F(CtlContract, AnEventSaysHowManyWereLostBeforeIt) {
  ASSERT_NO_FATAL_FAILURE(explicit_profile(5, {10, 20}));
  ASSERT_EQ(ev_online(5), 0);
  const auto send = [&](unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      node().send_event({.profile_id = 5,
                         .ev = node().snapshot()->ev_profiles.at(5).evs[0],
                         .state = core::EvState::kAssumedBad});
  };
  mrc_cq* cq = mrc_ctl_create_ev_event_cq(ctx(), 128, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr) << errno;
  constexpr unsigned kSent = 2'000;
  send(kSent);
  unsigned polled = 0;
  mrc_ctl_ev_event events[4] = {};
  for (int got = 1; got != 0; polled += static_cast<unsigned>(got)) {
    got = mrc_ctl_poll_ev_event(cq, 4, events);
    ASSERT_GE(got, 0);
    for (int i = 0; i < got; ++i)
      EXPECT_EQ(events[i].drop_count, 0U);
  }
  EXPECT_GE(polled, 128U);
  ASSERT_LT(polled, kSent);
  send(2);
  ASSERT_EQ(mrc_ctl_poll_ev_event(cq, 4, events), 2);
  EXPECT_EQ(events[0].drop_count, kSent - polled);
  EXPECT_EQ(events[1].drop_count, 0U);
  EXPECT_EQ(mrc_destroy_cq(cq), 0);
}

// Scenario: probes. The timeout counts nanoseconds, and the number of answers is written only.
TEST_F(CtlContract, ProbesTimeOutInNanoseconds) {
  mrc_ctl_ep_req requests[2] = {};
  for (std::uint16_t i = 0; i < 2; ++i) {
    requests[i].req_id = i;
    requests[i].sgid = requests[i].dgid = gid_of(context_.device->gid());
    requests[i].ev_fmt_mode = MRC_CTL_EV_FMT_MODE_STEV;
    requests[i].req_ev = host_order_ev(0x12345678U + i, 1);
  }
  requests[1].dgid.raw[15] ^= 0x55;  // nobody
  for (const int garbage : {-5, 0, 1, 1'000'000}) {
    mrc_ctl_ep_rsp answers[2] = {};
    int count = garbage;
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(mrc_ctl_ep_batch_send_wait(ctx(), 0, MRC_CTL_EP_OP_EV_PROBE, requests, 2, 200'000'000,
                                         answers, &count),
              -1);
    EXPECT_EQ(errno, ETIMEDOUT);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(100))
        << "as microseconds it would be 200 s";
    ASSERT_EQ(count, 1);
    EXPECT_EQ(answers[0].req_id, 0);
  }
}

TEST_F(CtlContract, TooManyOfAKindIsOneOfTheListedErrors) {
  for (std::uint64_t id = 0;; ++id) {
    const int error = create_format(1'000 + id, MRC_CTL_EV_FMT_MODE_STEV);
    if (error == 0) continue;
    EXPECT_EQ(error, E2BIG);
    break;
  }
}

}  // namespace
}  // namespace mrc::api
