// The states of a queue pair, and what each step takes.
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "api/handles.h"
#include "api/queue_pair.h"
#include "nic/device.h"
#include "node/config.h"
#include "unit/api/api_fixture.h"

namespace mrc::api_test {
namespace {

class ModifyQpTest : public MrcTest {
 protected:
  static int step(mrc_qp* qp, ibv_qp_state to, const mrc_qp_attr& mrc, int mrc_mask) {
    ibv_qp_attr attr{};
    attr.qp_state = to;
    mrc_qp_attr copy = mrc;
    return mrc_modify_qp(qp, &attr, IBV_QP_STATE, &copy, mrc_mask);
  }

  static int step(mrc_qp* qp, ibv_qp_state to) { return step(qp, to, {}, 0); }

  static mrc_qp_attr mrc_attr_of(mrc_qp* qp) {
    mrc_qp_attr attr{};
    EXPECT_EQ(mrc_query_qp(qp, nullptr, 0, &attr, MRC_QP_MPR, nullptr), 0);
    return attr;
  }
};

TEST_F(ModifyQpTest, GoesFromResetToRtsAndBack) {
  mrc_qp* qp = qps_[0];
  EXPECT_EQ(state_of(qp), IBV_QPS_RESET);
  EXPECT_EQ(to_init(qp), 0);
  EXPECT_EQ(state_of(qp), IBV_QPS_INIT);
  EXPECT_EQ(to_rtr(qp, qps_[1]), 0);
  EXPECT_EQ(state_of(qp), IBV_QPS_RTR);
  EXPECT_EQ(to_rts(qp), 0);
  EXPECT_EQ(state_of(qp), IBV_QPS_RTS);
  EXPECT_EQ(step(qp, IBV_QPS_ERR), 0);
  EXPECT_EQ(state_of(qp), IBV_QPS_ERR);
  EXPECT_EQ(step(qp, IBV_QPS_RESET), 0);
  EXPECT_EQ(state_of(qp), IBV_QPS_RESET);
  EXPECT_EQ(to_init(qp), 0);
}

// Contract 4: by STATE alone, whatever the state.
TEST_F(ModifyQpTest, GoesToErrAndResetFromAnywhere) {
  mrc_qp* qp = qps_[0];
  const auto there_and_back = [&] {
    EXPECT_EQ(step(qp, IBV_QPS_ERR), 0);
    EXPECT_EQ(state_of(qp), IBV_QPS_ERR);
    EXPECT_EQ(step(qp, IBV_QPS_ERR), 0);
    EXPECT_EQ(step(qp, IBV_QPS_RESET), 0);
    EXPECT_EQ(state_of(qp), IBV_QPS_RESET);
    EXPECT_EQ(step(qp, IBV_QPS_RESET), 0);
  };
  there_and_back();
  ASSERT_EQ(to_init(qp), 0);
  there_and_back();
  ASSERT_EQ(to_init(qp), 0);
  ASSERT_EQ(to_rtr(qp, qps_[1]), 0);
  there_and_back();
  ASSERT_EQ(to_init(qp), 0);
  ASSERT_EQ(to_rtr(qp, qps_[1]), 0);
  ASSERT_EQ(to_rts(qp), 0);
  there_and_back();
}

TEST_F(ModifyQpTest, SkipsNoState) {
  mrc_qp* qp = qps_[0];
  for (const ibv_qp_state to : {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_SQE})
    EXPECT_EQ(step(qp, to), EINVAL) << to;
  ASSERT_EQ(to_init(qp), 0);
  for (const ibv_qp_state to : {IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_UNKNOWN})
    EXPECT_EQ(step(qp, to), EINVAL) << to;
  ASSERT_EQ(to_rtr(qp, qps_[1]), 0);
  for (const ibv_qp_state to : {IBV_QPS_INIT, IBV_QPS_RTR})
    EXPECT_EQ(step(qp, to), EINVAL) << to;
  ASSERT_EQ(to_rts(qp), 0);
  for (const ibv_qp_state to : {IBV_QPS_INIT, IBV_QPS_RTR})
    EXPECT_EQ(step(qp, to), EINVAL) << to;
  ASSERT_EQ(step(qp, IBV_QPS_ERR), 0);
  for (const ibv_qp_state to : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS})
    EXPECT_EQ(step(qp, to), EINVAL) << to;
}

TEST_F(ModifyQpTest, OnlyTheStateIsNeededWhenThePeerWasNamedBefore) {
  for (std::size_t i = 0; i < qps_.size(); ++i) {
    ibv_qp_attr attr = peer_attr(qps_.at(1 - i));
    attr.qp_state = IBV_QPS_INIT;
    ASSERT_EQ(mrc_modify_qp(qps_.at(i), &attr, kPeerMask, nullptr, 0), 0);
  }
  for (const ibv_qp_state to : {IBV_QPS_RTR, IBV_QPS_RTS}) {
    for (mrc_qp* qp : qps_)
      ASSERT_EQ(step(qp, to), 0);
  }
  memory_[0] = 0x5a;
  ibv_sge sge = buffer(0, 1);
  ibv_send_wr request = write_request(&sge, 100);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(mrc_post_send(qps_[0], &request, &bad), 0);
  EXPECT_EQ(next_completion().status, IBV_WC_SUCCESS);
  EXPECT_EQ(memory_[100], 0x5a);
}

TEST_F(ModifyQpTest, WithoutAPeerAQueuePairIsItsOwn) {
  for (const ibv_qp_state to : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS})
    ASSERT_EQ(step(qps_[0], to), 0);
  memory_[0] = 0x77;
  ibv_sge sge = buffer(0, 1);
  ibv_send_wr request = write_request(&sge, 100);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(mrc_post_send(qps_[0], &request, &bad), 0);
  EXPECT_EQ(next_completion().status, IBV_WC_SUCCESS);
  EXPECT_EQ(memory_[100], 0x77);
}

TEST_F(ModifyQpTest, NeverFailsOnWhatVerbsHasAndMrcHasNot) {
  mrc_qp* qp = qps_[0];
  ibv_qp_attr attr = peer_attr(qps_[1]);
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 200;
  attr.timeout = 31;
  attr.retry_cnt = 14;
  attr.rnr_retry = 7;
  constexpr int kStrange = IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_QP_RD_ATOMIC |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
  EXPECT_EQ(mrc_modify_qp(qp, &attr, IBV_QP_STATE | kStrange, nullptr, 0), 0);
  attr.qp_state = IBV_QPS_RTR;
  EXPECT_EQ(mrc_modify_qp(qp, &attr, kPeerMask | kStrange, nullptr, 0), 0);
  attr.qp_state = IBV_QPS_RTS;
  EXPECT_EQ(mrc_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | kStrange, nullptr, 0), 0);
  EXPECT_EQ(mrc_modify_qp(qp, &attr, kStrange, nullptr, 0), 0) << "in RTS, in place";
  attr.qp_state = IBV_QPS_ERR;
  EXPECT_EQ(mrc_modify_qp(qp, &attr, IBV_QP_STATE | kStrange, nullptr, 0), 0);
}

// A queue pair of a device whose packets carry 1024 bytes, whatever its program asks for.
TEST_F(ModifyQpTest, TheMtuInUseIsReadBack) {
  const mrc::test::TemporaryDirectory directory;
  node::DeviceConfig config = node::default_device();
  config.name = "small";
  config.directory = directory.path();
  config.udp_port = static_cast<std::uint16_t>(31'000 + getpid() % 20'000);
  config.path_mtu = 1024;
  std::string error;
  const std::shared_ptr<nic::Device> device = nic::Device::open(config, error);
  ASSERT_NE(device, nullptr) << error;
  std::unique_ptr<nic::CompletionQueue> cq;
  ASSERT_EQ(device->create_completion_queue(16, nullptr, nullptr, cq), 0);
  nic::QpSetup setup;
  setup.domain = device->new_domain();
  setup.send_cq = setup.receive_cq = cq.get();
  api::QueuePair pair;
  ASSERT_EQ(pair.create(device, api::Dialect::kMrc, setup), 0);
  for (const auto& [asked, used] :
       {std::pair{IBV_MTU_4096, IBV_MTU_1024}, {IBV_MTU_512, IBV_MTU_512}}) {
    for (const ibv_qp_state to : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_RESET}) {
      ibv_qp_attr attr{};
      attr.qp_state = to;
      attr.path_mtu = asked;
      const int mask = to == IBV_QPS_RTR ? IBV_QP_STATE | IBV_QP_PATH_MTU : IBV_QP_STATE;
      ASSERT_EQ(pair.modify({.verbs = &attr, .verbs_mask = mask}), 0);
      mrc_qp_attr unused{};
      pair.query(attr, unused);
      const bool is_set = to == IBV_QPS_RTR || to == IBV_QPS_RTS;
      EXPECT_EQ(attr.path_mtu, is_set ? used : IBV_MTU_1024) << to;
    }
  }
  pair.destroy();
}

class VerbsTimersTest : public ModifyQpTest {
 protected:
  static constexpr int kMask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT;

  // The first queue pair goes to RTS with them; what MRC makes of it.
  mrc_qp_attr with_timers(std::uint8_t timeout, std::uint8_t retries) {
    EXPECT_EQ(to_init(qps_[0]), 0);
    EXPECT_EQ(to_rtr(qps_[0], qps_[1]), 0);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = timeout;
    attr.retry_cnt = retries;
    EXPECT_EQ(mrc_modify_qp(qps_[0], &attr, kMask, nullptr, 0), 0);
    return mrc_attr_of(qps_[0]);
  }
};

TEST_F(VerbsTimersTest, BecomeTimersOfMrc) {
  const mrc_qp_attr mrc = with_timers(14, 14);
  EXPECT_EQ(mrc.timeout, 16) << "4.096 us * 2^14 is 1.024 us * 2^16";
  EXPECT_EQ(mrc.retry.linear_cnt, 7);
  EXPECT_EQ(mrc.retry.exp_cnt, 4) << "seconds, not minutes";
  ibv_qp_attr now{};
  ASSERT_EQ(mrc_query_qp(qps_[0], &now, kMask, nullptr, 0, nullptr), 0);
  EXPECT_EQ(now.timeout, 14);
  EXPECT_EQ(now.retry_cnt, 14);
}

// The values of OCP's benchmark: 14 times 0.5 ms, which a process without a processor may be away.
TEST_F(VerbsTimersTest, HaveTwoSecondsOfPatienceWhereTheyAreShort) {
  const mrc_qp_attr mrc = with_timers(7, 14);
  EXPECT_EQ(mrc.timeout, 9);
  EXPECT_EQ(mrc.retry.linear_cnt, 7);
  EXPECT_EQ(mrc.retry.exp_cnt, 11) << "0.5 ms doubled eleven times is 2.1 s in sum";
}

TEST_F(ModifyQpTest, EachStepTakesItsOwnMrcAttributes) {
  mrc_qp* qp = qps_[0];
  mrc_qp_attr mrc{};
  mrc.mpr = {.mpr = 4, .mpr_dest = 6};
  mrc.wimm = {.max_wimm = 10, .max_wimm_dest = 20};
  mrc.timeout = 10;
  mrc.retry = {.linear_cnt = 3, .exp_cnt = 25};
  mrc.cap = MRC_QP_CAP_DYNAMIC_MPR;
  mrc.vendor_cfg[5] = 99;
  constexpr int kRtr = MRC_QP_MAX_WIMM_DEST | MRC_QP_MPR_DEST | MRC_QP_CAP | MRC_QP_VENDOR_CFG;
  constexpr int kRts = MRC_QP_MAX_WIMM | MRC_QP_MPR | MRC_QP_RETRY_CNT | MRC_QP_TIMEOUT;
  for (const int wrong : {MRC_QP_MAX_WIMM_DEST, MRC_QP_MPR_DEST, MRC_QP_CAP, MRC_QP_MAX_WIMM,
                          MRC_QP_MPR, MRC_QP_RETRY_CNT, MRC_QP_TIMEOUT})
    EXPECT_EQ(step(qp, IBV_QPS_INIT, mrc, wrong), EINVAL) << wrong;
  ASSERT_EQ(step(qp, IBV_QPS_INIT, mrc, MRC_QP_HINT), 0) << "no hint is a hint";
  for (const int wrong : {MRC_QP_HINT, MRC_QP_EV_PROFILE_ID, MRC_QP_CC_PROFILE_ID})
    EXPECT_EQ(step(qp, IBV_QPS_RTR, mrc, wrong), EINVAL) << wrong;
  ASSERT_EQ(step(qp, IBV_QPS_RTR, mrc, kRtr), 0);
  for (const int wrong : {MRC_QP_HINT, MRC_QP_MPR_DEST, MRC_QP_CAP})
    EXPECT_EQ(step(qp, IBV_QPS_RTS, mrc, wrong), EINVAL) << wrong;
  ASSERT_EQ(step(qp, IBV_QPS_RTS, mrc, kRts), 0);
  const mrc_qp_attr now = mrc_attr_of(qp);
  EXPECT_EQ(now.mpr.mpr, 4);
  EXPECT_EQ(now.mpr.mpr_dest, 6);
  EXPECT_EQ(now.wimm.max_wimm, 10);
  EXPECT_EQ(now.wimm.max_wimm_dest, 20);
  EXPECT_EQ(now.timeout, 10);
  EXPECT_EQ(now.retry.linear_cnt, 3);
  EXPECT_EQ(now.retry.exp_cnt, 25);
  EXPECT_EQ(now.cap, static_cast<unsigned>(MRC_QP_CAP_DYNAMIC_MPR));
  EXPECT_EQ(now.vendor_cfg[5], 99);
  EXPECT_EQ(step(qp, IBV_QPS_ERR, mrc, MRC_QP_MPR), EINVAL);
}

TEST_F(ModifyQpTest, ValuesOutOfRangeAreRefused) {
  mrc_qp* qp = qps_[0];
  ASSERT_EQ(to_init(qp), 0);
  mrc_qp_attr mrc{};
  mrc.cap = 1U << 9;
  EXPECT_EQ(step(qp, IBV_QPS_RTR, mrc, MRC_QP_CAP), EINVAL);
  EXPECT_EQ(step(qp, IBV_QPS_RTR, mrc, MRC_QP_MPR_DEST), EINVAL) << "0 units";
  mrc.wimm.max_wimm_dest = 65'535;
  EXPECT_EQ(step(qp, IBV_QPS_RTR, mrc, MRC_QP_MAX_WIMM_DEST), EINVAL);

  const auto refused = [&](const std::function<void(ibv_qp_attr&)>& spoil) {
    ibv_qp_attr attr = peer_attr(qps_[1]);
    spoil(attr);
    return mrc_modify_qp(qp, &attr, kPeerMask | IBV_QP_PKEY_INDEX, nullptr, 0);
  };
  EXPECT_EQ(refused([](auto& a) { a.path_mtu = static_cast<ibv_mtu>(0); }), EINVAL);
  EXPECT_EQ(refused([](auto& a) { a.path_mtu = static_cast<ibv_mtu>(6); }), EINVAL);
  EXPECT_EQ(refused([](auto& a) { a.dest_qp_num = 1U << 24; }), EINVAL);
  EXPECT_EQ(refused([](auto& a) { a.dest_qp_num = 2; }), EINVAL) << "reserved";
  EXPECT_EQ(refused([](auto& a) { a.ah_attr.is_global = 0; }), EINVAL);
  EXPECT_EQ(refused([](auto& a) { a.ah_attr.grh.sgid_index = 4; }), EINVAL);
  EXPECT_EQ(refused([](auto& a) { a.ah_attr.grh.dgid = {}; }), EINVAL);
  // DSCP 12 and 16 mark trimmed packets; the two bits below are ECN.
  EXPECT_EQ(refused([](auto& a) { a.ah_attr.grh.traffic_class = 12 << 2 | 1; }), EINVAL);
  EXPECT_EQ(refused([](auto& a) { a.ah_attr.grh.traffic_class = 16 << 2; }), EINVAL);
  EXPECT_EQ(refused([](auto& a) { a.pkey_index = 1; }), EINVAL);
  EXPECT_EQ(state_of(qp), IBV_QPS_INIT);
  ASSERT_EQ(to_rtr(qp, qps_[1]), 0);

  mrc = {};
  EXPECT_EQ(step(qp, IBV_QPS_RTS, mrc, MRC_QP_MPR), EINVAL) << "0 units";
  mrc.timeout = 25;
  EXPECT_EQ(step(qp, IBV_QPS_RTS, mrc, MRC_QP_TIMEOUT), EINVAL);
  mrc.retry = {.linear_cnt = 8, .exp_cnt = 0};
  EXPECT_EQ(step(qp, IBV_QPS_RTS, mrc, MRC_QP_RETRY_CNT), EINVAL);
  mrc.retry = {.linear_cnt = 7, .exp_cnt = 26};
  EXPECT_EQ(step(qp, IBV_QPS_RTS, mrc, MRC_QP_RETRY_CNT), EINVAL);
  mrc.wimm.max_wimm = 65'535;
  EXPECT_EQ(step(qp, IBV_QPS_RTS, mrc, MRC_QP_MAX_WIMM), EINVAL);
  EXPECT_EQ(state_of(qp), IBV_QPS_RTR);
  EXPECT_EQ(mrc_attr_of(qp).timeout, mrc_attr_of(qps_[1]).timeout) << "refused is unchanged";
}

TEST_F(ModifyQpTest, TheCurrentStateMustBeTheOneNamed) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.cur_qp_state = IBV_QPS_RTS;
  EXPECT_EQ(mrc_modify_qp(qps_[0], &attr, IBV_QP_STATE | IBV_QP_CUR_STATE, nullptr, 0), EINVAL);
  attr.cur_qp_state = IBV_QPS_RESET;
  EXPECT_EQ(mrc_modify_qp(qps_[0], &attr, IBV_QP_STATE | IBV_QP_CUR_STATE, nullptr, 0), 0);
}

TEST_F(ModifyQpTest, AHintIsInUseUntilTheQueuePairIsReset) {
  mrc_qp_hint_init_attr init{};
  init.attr.num_remote_recv_peers = 3;
  mrc_qp_hint* hint = mrc_create_qp_hint(context_, &init);
  ASSERT_NE(hint, nullptr);
  mrc_qp_attr mrc{};
  mrc.qp_hint = hint;
  ASSERT_EQ(step(qps_[0], IBV_QPS_INIT, mrc, MRC_QP_HINT), 0);
  EXPECT_EQ(mrc_attr_of(qps_[0]).qp_hint, hint);
  EXPECT_EQ(why(mrc_destroy_qp_hint(hint)), EBUSY);
  ASSERT_EQ(step(qps_[0], IBV_QPS_RESET), 0);
  EXPECT_EQ(mrc_attr_of(qps_[0]).qp_hint, nullptr);
  ASSERT_EQ(step(qps_[0], IBV_QPS_INIT, mrc, MRC_QP_HINT), 0);
  EXPECT_EQ(why(mrc_destroy_qp_hint(hint)), EBUSY);
  EXPECT_EQ(mrc_destroy_qp(qps_[0]), 0);
  qps_[0] = nullptr;
  EXPECT_EQ(why(mrc_destroy_qp_hint(hint)), 0);
}

class HintTest : public ModifyQpTest {
 protected:
  // The congestion window that a queue pair begins with under a hint.
  std::int64_t first_window(const mrc_qp_hint_attr& attr) {
    mrc_qp_hint_init_attr init{};
    init.attr = attr;
    mrc_qp_hint* hint = mrc_create_qp_hint(context_, &init);
    EXPECT_NE(hint, nullptr);
    mrc_qp_attr mrc{};
    mrc.qp_hint = hint;
    EXPECT_EQ(step(qps_[0], IBV_QPS_INIT, mrc, MRC_QP_HINT), 0);
    EXPECT_EQ(to_rtr(qps_[0], qps_[1]), 0);
    EXPECT_EQ(to_rts(qps_[0]), 0);
    const std::int64_t window = qps_[0]->pair.nic().report().status.window_bytes;
    EXPECT_EQ(step(qps_[0], IBV_QPS_RESET), 0);
    EXPECT_EQ(why(mrc_destroy_qp_hint(hint)), 0);
    return window;
  }

  static mrc_qp_hint_attr rates(std::uint8_t version, std::uint32_t initial, std::uint32_t min,
                                std::uint32_t max) {
    mrc_qp_hint_attr attr{};
    const std::uint32_t words[3] = {initial, min, max};
    attr.vendor_cfg[0] = version;
    std::memcpy(attr.vendor_cfg + 4, words, sizeof words);
    return attr;
  }
};

TEST_F(HintTest, CountsAndRatesMakeTheFirstWindow) {
  constexpr std::uint32_t kLine = 1U << 20;
  const std::int64_t full = first_window({});
  mrc_qp_hint_attr eight_receive{};
  eight_receive.num_remote_recv_peers = 8;
  EXPECT_EQ(first_window(eight_receive), full / 8);
  mrc_qp_hint_attr pairs_of_four = eight_receive;
  pairs_of_four.num_qps_per_peer = 4;
  EXPECT_EQ(first_window(pairs_of_four), full / 2) << "two controllers of four queue pairs each";
  mrc_qp_hint_attr to_four{};
  to_four.num_send_peers = 4;
  EXPECT_EQ(first_window(to_four), full / 4);

  EXPECT_EQ(first_window(rates(1, kLine / 4, 0, 0)), full / 4);
  EXPECT_EQ(first_window(rates(1, 0, 0, kLine / 4)), full / 4);
  EXPECT_EQ(first_window(rates(1, kLine / 8, kLine / 2, 0)), full / 2);
  EXPECT_EQ(first_window(rates(1, 0xFFFF'FFFF, 0, 0)), full) << "the line's at most";
  mrc_qp_hint_attr four = rates(1, kLine / 8, 0, 0);
  four.num_qps_per_peer = 4;
  EXPECT_EQ(first_window(four), full / 2) << "a rate is a queue pair's, a window that of all four";
  EXPECT_EQ(first_window(rates(2, kLine / 4, 0, 0)), full) << "somebody else's bytes";
}

TEST_F(ModifyQpTest, WhatWasGrantedIsReadBack) {
  mrc_qp_init_attr init{};
  ASSERT_EQ(mrc_query_qp(qps_[0], nullptr, 0, nullptr, 0, &init), 0);
  EXPECT_EQ(init.send_cq, cq_);
  EXPECT_EQ(init.pd, pd_);
  EXPECT_GE(init.cap.max_send_wr, 32U);
  EXPECT_GE(init.cap.max_recv_wr, 32U);
  EXPECT_GE(init.cap.max_inline_data, 64U);
  ibv_qp_attr attr{};
  ASSERT_EQ(mrc_query_qp(qps_[0], &attr, IBV_QP_CAP, nullptr, 0, nullptr), 0);
  EXPECT_EQ(attr.cap.max_send_wr, init.cap.max_send_wr);
}

}  // namespace
}  // namespace mrc::api_test
