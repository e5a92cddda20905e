// The application half of the API as OCP's header and walk-through have it: how calls report, the
// walk from RESET to RTS, and who may write where. Written from the contract, not from the code.
#include <cerrno>

#include "unit/api/api_fixture.h"

namespace mrc::api_test {
namespace {

// What a call returned, and what errno was afterwards.
struct Report {
  int result = 0;
  int error = 0;
  friend bool operator==(const Report&, const Report&) = default;
};

constexpr int kUntouched = 4711;

template <typename Call>
Report report_of(const Call& call) {
  errno = kUntouched;
  const int result = call();
  return {result, errno};
}

constexpr Report by_minus_one(int error) { return {-1, error}; }
constexpr Report by_value(int error) { return {error, error}; }
constexpr Report kSuccess{0, kUntouched};

class ContractTest : public MrcTest {
 protected:
  static int step(mrc_qp* qp, ibv_qp_state state, mrc_qp_attr mrc, int mask) {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    return mrc_modify_qp(qp, &attr, IBV_QP_STATE, &mrc, mask);
  }
  static mrc_qp_attr attributes_of(mrc_qp* qp) {
    mrc_qp_attr now{};
    EXPECT_EQ(mrc_query_qp(qp, nullptr, 0, &now, kAllMrc, nullptr), 0);
    return now;
  }
  static constexpr int kAllMrc = MRC_QP_MAX_WIMM | MRC_QP_MAX_WIMM_DEST | MRC_QP_MPR |
                                 MRC_QP_MPR_DEST | MRC_QP_TIMEOUT | MRC_QP_EV_PROFILE_ID |
                                 MRC_QP_CC_PROFILE_ID | MRC_QP_HINT | MRC_QP_RETRY_CNT |
                                 MRC_QP_CAP | MRC_QP_VENDOR_CFG;
};

TEST_F(ContractTest, TheseCallsReportByMinusOneAndErrno) {
  mrc_device_attr attr{};
  int supported = 0;
  EXPECT_EQ(report_of([&] { return mrc_query_device(nullptr, &attr, &supported); }),
            by_minus_one(EINVAL));
  EXPECT_EQ(report_of([&] { return mrc_query_device(verbs_, &attr, &supported); }), kSuccess);
  EXPECT_EQ(report_of([&] { return mrc_query_device_ex(nullptr, nullptr, &attr, &supported); }),
            by_minus_one(EINVAL));
  EXPECT_EQ(report_of([&] { return mrc_query_device_ex(verbs_, context_, &attr, &supported); }),
            kSuccess);
  EXPECT_EQ(report_of([&] { return mrc_destroy_context(nullptr); }), by_minus_one(EINVAL));
  EXPECT_EQ(report_of([&] { return mrc_destroy_context(context_); }), by_minus_one(EBUSY));
  int fd = 0;
  EXPECT_EQ(report_of([&] { return mrc_get_comp_channel_fd(nullptr, &fd); }), by_minus_one(EINVAL));
  EXPECT_EQ(report_of([&] { return mrc_get_comp_channel_fd(channel_, &fd); }), kSuccess);
  std::uint32_t number = 0;
  EXPECT_EQ(report_of([&] { return mrc_get_qpn(nullptr, &number); }), by_minus_one(EINVAL));
  EXPECT_EQ(report_of([&] { return mrc_get_qpn(qps_[0], &number); }), kSuccess);
  EXPECT_EQ(number & 0xFF00'0000U, 0U) << "24 bits, in any state";
  mrc_qp_hint_init_attr init{};
  mrc_qp_hint* hint = mrc_create_qp_hint(context_, &init);
  ASSERT_NE(hint, nullptr);
  mrc_qp_hint_attr values{};
  EXPECT_EQ(report_of([&] { return mrc_query_qp_hint(hint, &values, 8); }), by_minus_one(EINVAL));
  EXPECT_EQ(report_of([&] { return mrc_query_qp_hint(hint, &values, 1); }), kSuccess);
  values.num_send_peers = -1;
  EXPECT_EQ(report_of([&] { return mrc_modify_qp_hint(hint, &values, 2); }), by_minus_one(EINVAL));
  EXPECT_EQ(report_of([&] { return mrc_modify_qp_hint(hint, &values, 1); }), kSuccess);
  EXPECT_EQ(report_of([&] { return mrc_destroy_qp_hint(nullptr); }), by_minus_one(EINVAL));
  EXPECT_EQ(report_of([&] { return mrc_destroy_qp_hint(hint); }), kSuccess);
}

TEST_F(ContractTest, PollingAndReceivesReportByMinusOneToo) {
  ibv_wc wc{};
  EXPECT_EQ(report_of([&] { return mrc_poll_cq(nullptr, 1, &wc); }), by_minus_one(EINVAL));
  EXPECT_EQ(report_of([&] { return mrc_poll_cq(cq_, -1, &wc); }), by_minus_one(EINVAL));
  EXPECT_EQ(report_of([&] { return mrc_poll_cq(cq_, 1, &wc); }), kSuccess) << "it is empty";
  ibv_recv_wr receive{};
  ibv_recv_wr* bad = nullptr;
  const auto post = [&] { return mrc_post_recv(qps_[0], &receive, &bad); };
  EXPECT_EQ(report_of(post), by_minus_one(EINVAL)) << "in RESET";
  EXPECT_EQ(bad, &receive);
  ASSERT_EQ(to_init(qps_[0]), 0);
  for (unsigned i = 0; i < 32; ++i)
    ASSERT_EQ(report_of(post), kSuccess) << i;
  bad = nullptr;
  EXPECT_EQ(report_of(post), by_minus_one(ENOMEM)) << "the queue is full";
  EXPECT_EQ(bad, &receive);
}

TEST_F(ContractTest, TheNamesakesOfVerbsReportByValueAndErrno) {
  ibv_qp_attr attr{};
  EXPECT_EQ(report_of([&] { return mrc_modify_qp(nullptr, &attr, IBV_QP_STATE, nullptr, 0); }),
            by_value(EINVAL));
  EXPECT_EQ(report_of([&] { return mrc_query_qp(nullptr, &attr, 1, nullptr, 0, nullptr); }),
            by_value(EINVAL));
  EXPECT_EQ(report_of([&] { return mrc_query_qp(qps_[0], &attr, 1, nullptr, 0, nullptr); }),
            kSuccess);
  EXPECT_EQ(report_of([&] { return to_init(qps_[0]); }), kSuccess);
  EXPECT_EQ(report_of([&] { return mrc_destroy_qp(nullptr); }), by_value(EINVAL));
  EXPECT_EQ(report_of([&] { return mrc_destroy_cq(cq_); }), by_value(EBUSY));
  EXPECT_EQ(report_of([&] { return mrc_destroy_comp_channel(channel_); }), by_value(EBUSY));
  EXPECT_EQ(report_of([&] { return mrc_req_notify_cq(nullptr, 0); }), by_value(EINVAL));
  EXPECT_EQ(report_of([&] { return mrc_req_notify_cq(cq_, 0); }), kSuccess);
  ibv_sge sge = buffer(0, 8);
  ibv_send_wr send = write_request(&sge, 64);
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(report_of([&] { return mrc_post_send(qps_[0], &send, &bad); }), by_value(EINVAL))
      << "before RTS";
  EXPECT_EQ(bad, &send);
  mrc_comp_channel* channel = nullptr;
  EXPECT_EQ(report_of([&] { return mrc_create_comp_channel(nullptr, &channel); }),
            by_value(EINVAL));
  EXPECT_EQ(report_of([&] { return mrc_create_comp_channel(context_, &channel); }), kSuccess);
  EXPECT_EQ(report_of([&] { return mrc_destroy_comp_channel(channel); }), kSuccess);
}

TEST_F(ContractTest, ADeviceSpeaksVersionOne) {
  mrc_device_attr attr{};
  int supported = 0;
  ASSERT_EQ(mrc_query_device(verbs_, &attr, &supported), 0);
  EXPECT_EQ(attr.mrc_protocol_version, 1U) << "the enumerators are the bits, and version 0 is none";
}

// Without any peer, and every value read back at the end.
TEST_F(ContractTest, ATimeoutOfMrcHoldsBesideOneOfVerbs) {
  mrc_qp* qp = qps_[0];
  ASSERT_EQ(step(qp, IBV_QPS_INIT, {}, 0), 0);
  ASSERT_EQ(step(qp, IBV_QPS_RTR, {}, 0), 0);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 0;  // alone: tries for ever
  mrc_qp_attr mrc{};
  mrc.timeout = 8;
  ASSERT_EQ(mrc_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT, &mrc, MRC_QP_TIMEOUT), 0);
  const mrc_qp_attr now = attributes_of(qp);
  EXPECT_EQ(now.timeout, 8);
  EXPECT_LT(now.retry.exp_cnt, 25);
}

TEST_F(ContractTest, TheWalkFromResetToReadyToSend) {
  mrc_qp* qp = qps_[0];
  EXPECT_EQ(state_of(qp), IBV_QPS_RESET);
  mrc_qp_attr mrc{};
  ASSERT_EQ(step(qp, IBV_QPS_INIT, mrc, MRC_QP_HINT), 0) << "a hint of NULL is none";
  mrc.mpr = {.mpr = 8, .mpr_dest = 8};
  mrc.wimm = {.max_wimm = 128, .max_wimm_dest = 128};
  mrc.cap = MRC_QP_CAP_DYNAMIC_MPR;
  constexpr int kRtr =
      MRC_QP_MPR | MRC_QP_MPR_DEST | MRC_QP_MAX_WIMM | MRC_QP_MAX_WIMM_DEST | MRC_QP_CAP;
  ASSERT_EQ(step(qp, IBV_QPS_RTR, mrc, kRtr), 0);
  mrc.timeout = 8;
  mrc.retry = {.linear_cnt = 7, .exp_cnt = 25};
  constexpr int kRts = MRC_QP_MPR | MRC_QP_MAX_WIMM | MRC_QP_TIMEOUT | MRC_QP_RETRY_CNT;
  ASSERT_EQ(step(qp, IBV_QPS_RTS, mrc, kRts), 0);
  EXPECT_EQ(state_of(qp), IBV_QPS_RTS);
  const mrc_qp_attr now = attributes_of(qp);
  EXPECT_EQ(now.mpr.mpr, 8);
  EXPECT_EQ(now.mpr.mpr_dest, 8);
  EXPECT_EQ(now.wimm.max_wimm, 128);
  EXPECT_EQ(now.wimm.max_wimm_dest, 128);
  EXPECT_EQ(now.timeout, 8);
  EXPECT_EQ(now.retry.linear_cnt, 7);
  EXPECT_EQ(now.retry.exp_cnt, 25);
  EXPECT_EQ(now.cap, static_cast<std::uint32_t>(MRC_QP_CAP_DYNAMIC_MPR));
  EXPECT_EQ(now.qp_hint, nullptr);
}

// The comma in the published mask leaves the last bit alone.
TEST_F(ContractTest, TheWalkAsItCompiles) {
  mrc_qp_attr mrc{};
  mrc.cap = MRC_QP_CAP_DYNAMIC_MPR;
  ASSERT_EQ(step(qps_[0], IBV_QPS_INIT, mrc, 0), 0);
  ASSERT_EQ(step(qps_[0], IBV_QPS_RTR, mrc, MRC_QP_CAP), 0);
  ASSERT_EQ(step(qps_[0], IBV_QPS_RTS, mrc, 0), 0);
}

TEST_F(ContractTest, ASendersValuesOfRtrHoldUnlessRtsHasOthers) {
  mrc_qp_attr mrc{};
  mrc.mpr.mpr = 3;
  mrc.wimm.max_wimm = 33;
  for (mrc_qp* qp : qps_) {
    ASSERT_EQ(step(qp, IBV_QPS_INIT, mrc, 0), 0);
    ASSERT_EQ(step(qp, IBV_QPS_RTR, mrc, MRC_QP_MPR | MRC_QP_MAX_WIMM), 0);
  }
  ASSERT_EQ(step(qps_[0], IBV_QPS_RTS, mrc, 0), 0);
  mrc.mpr.mpr = 5;
  ASSERT_EQ(step(qps_[1], IBV_QPS_RTS, mrc, MRC_QP_MPR), 0);
  EXPECT_EQ(attributes_of(qps_[0]).mpr.mpr, 3);
  EXPECT_EQ(attributes_of(qps_[0]).wimm.max_wimm, 33);
  EXPECT_EQ(attributes_of(qps_[1]).mpr.mpr, 5);
  EXPECT_EQ(attributes_of(qps_[1]).wimm.max_wimm, 33);
}

// --- Who may write: the region and, once it was told, the queue pair must allow it.

class AccessFlags : public MrcTest {
 protected:
  static constexpr int kFlags = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;

  void connect_with(unsigned flags) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.qp_access_flags = flags;
    ASSERT_EQ(to_init(qps_[0]), 0);
    ASSERT_EQ(mrc_modify_qp(qps_[1], &attr, kFlags, nullptr, 0), 0);
    ASSERT_EQ(to_rtr(qps_[0], qps_[1]), 0);
    ASSERT_EQ(to_rtr(qps_[1], qps_[0]), 0);
    for (mrc_qp* qp : qps_)
      ASSERT_EQ(to_rts(qp), 0);
  }
  ibv_wc_status write() {
    memory_[0] = 42;
    memory_[64] = 0;
    ibv_sge sge = buffer(0, 8);
    ibv_send_wr send = write_request(&sge, 64);
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(mrc_post_send(qps_[0], &send, &bad), 0);
    return next_completion().status;
  }
};

TEST_F(AccessFlags, WithoutRemoteWriteNothingLands) {
  for (const unsigned flags : {0U, 1U * IBV_ACCESS_LOCAL_WRITE, 1U * IBV_ACCESS_REMOTE_READ}) {
    ASSERT_NO_FATAL_FAILURE(connect_with(flags));
    EXPECT_EQ(write(), IBV_WC_REM_ACCESS_ERR) << flags;
    EXPECT_EQ(memory_[64], 0) << flags;
    ibv_qp_attr reset{};
    reset.qp_state = IBV_QPS_RESET;
    for (mrc_qp* qp : qps_)
      ASSERT_EQ(mrc_modify_qp(qp, &reset, IBV_QP_STATE, nullptr, 0), 0);
  }
  ASSERT_NO_FATAL_FAILURE(connect());
  EXPECT_EQ(write(), IBV_WC_SUCCESS) << "a reset takes the flags away";
}

TEST_F(AccessFlags, WithItWritesLandWhateverElseIsSet) {
  ASSERT_NO_FATAL_FAILURE(
      connect_with(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC));
  EXPECT_EQ(write(), IBV_WC_SUCCESS);
  EXPECT_EQ(memory_[64], 42);
}

TEST_F(AccessFlags, TheyCanChangeWhileTheQueuePairRuns) {
  ASSERT_NO_FATAL_FAILURE(connect());
  EXPECT_EQ(write(), IBV_WC_SUCCESS) << "never told";
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE;
  ASSERT_EQ(mrc_modify_qp(qps_[1], &attr, kFlags, nullptr, 0), 0);
  EXPECT_EQ(write(), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(memory_[64], 0);
}

}  // namespace
}  // namespace mrc::api_test
