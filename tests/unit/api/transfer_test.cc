// Data, completions and events between two queue pairs of one process.
#include <arpa/inet.h>
#include <fcntl.h>

#include <cerrno>
#include <numeric>
#include <thread>

#include "unit/api/api_fixture.h"

namespace mrc::api_test {
namespace {

class TransferTest : public MrcTest {
 protected:
  void SetUp() override {
    MrcTest::SetUp();
    ASSERT_FALSE(HasFatalFailure());
    connect();
  }

  int post(ibv_send_wr& request, mrc_qp* qp = nullptr) {
    ibv_send_wr* bad = nullptr;
    return mrc_post_send(qp == nullptr ? qps_[0] : qp, &request, &bad);
  }

  int post_receives(mrc_qp* qp, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      ibv_recv_wr receive{};
      receive.wr_id = 1000 + i;
      ibv_recv_wr* bad = nullptr;
      const int error = why(mrc_post_recv(qp, &receive, &bad));
      if (error != 0) return error;
    }
    return 0;
  }
};

TEST_F(TransferTest, AWriteOfSeveralPacketsArrivesWhole) {
  constexpr std::size_t kBytes = 300'000;
  constexpr std::size_t kTo = 500'000;
  for (std::size_t i = 0; i < kBytes; ++i)
    memory_[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
  ibv_sge sge = buffer(0, kBytes);
  ibv_send_wr request = write_request(&sge, kTo);
  ASSERT_EQ(post(request), 0);
  const ibv_wc wc = next_completion();
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_RDMA_WRITE);
  EXPECT_EQ(wc.wr_id, 7U);
  EXPECT_TRUE(std::equal(memory_.begin(), memory_.begin() + kBytes, memory_.begin() + kTo));
  EXPECT_EQ(memory_[kTo - 1], 0);
  EXPECT_EQ(memory_[kTo + kBytes], 0);
}

TEST_F(TransferTest, AnImmediateCompletesAtBothEnds) {
  ASSERT_EQ(post_receives(qps_[1], 1), 0);
  ibv_sge sge = buffer(0, 100);
  ibv_send_wr request = write_request(&sge, 5000);
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.imm_data = htonl(0x01020304);
  ASSERT_EQ(post(request), 0);
  std::uint32_t receiver = 0;
  ASSERT_EQ(why(mrc_get_qpn(qps_[1], &receiver)), 0);
  for (int i = 0; i < 2; ++i) {
    const ibv_wc wc = next_completion();
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    if (wc.opcode != IBV_WC_RECV_RDMA_WITH_IMM) continue;
    EXPECT_EQ(wc.wr_id, 1000U);
    EXPECT_EQ(wc.qp_num, receiver);
    EXPECT_EQ(wc.byte_len, 100U);
    EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
    EXPECT_EQ(ntohl(wc.imm_data), 0x01020304U);
  }
}

TEST_F(TransferTest, OnlySignaledWritesComplete) {
  ibv_sge sge = buffer(0, 16);
  ibv_send_wr request = write_request(&sge, 5000);
  request.send_flags = 0;
  for (int i = 0; i < 5; ++i)
    ASSERT_EQ(post(request), 0);
  request.wr_id = 99;
  request.send_flags = IBV_SEND_SIGNALED;
  ASSERT_EQ(post(request), 0);
  EXPECT_EQ(next_completion().wr_id, 99U);
  ibv_wc wc{};
  EXPECT_EQ(mrc_poll_cq(cq_, 1, &wc), 0);
}

TEST_F(TransferTest, AListIsTakenUpToTheFirstBadRequest) {
  ibv_sge sge = buffer(0, 16);
  std::array<ibv_send_wr, 9> requests;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests.at(i) = write_request(&sge, 5000 + 16 * i);
    requests.at(i).wr_id = i;
    if (i > 0) requests.at(i - 1).next = &requests.at(i);
  }
  requests[6].opcode = IBV_WR_RDMA_READ;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(mrc_post_send(qps_[0], requests.data(), &bad), EOPNOTSUPP);
  EXPECT_EQ(bad, &requests[6]);
  for (std::uint64_t i = 0; i < 6; ++i)
    EXPECT_EQ(next_completion().wr_id, i);
}

TEST_F(TransferTest, InlineDataMayChangeAfterwards) {
  memory_[0] = 1;
  ibv_sge sge = buffer(0, 1);
  sge.lkey = 0;
  ibv_send_wr request = write_request(&sge, 5000);
  request.send_flags |= IBV_SEND_INLINE;
  ASSERT_EQ(post(request), 0);
  memory_[0] = 2;
  EXPECT_EQ(next_completion().status, IBV_WC_SUCCESS);
  EXPECT_EQ(memory_[5000], 1);
}

TEST_F(TransferTest, TwoBuffersArriveAsOne) {
  std::iota(memory_.begin(), memory_.begin() + 200, std::uint8_t{0});
  std::array<ibv_sge, 2> list{buffer(10, 50), buffer(100, 70)};
  ibv_send_wr request = write_request(list.data(), 5000);
  request.num_sge = 2;
  ASSERT_EQ(post(request), 0);
  EXPECT_EQ(next_completion().status, IBV_WC_SUCCESS);
  EXPECT_TRUE(std::equal(memory_.begin() + 10, memory_.begin() + 60, memory_.begin() + 5000));
  EXPECT_TRUE(std::equal(memory_.begin() + 100, memory_.begin() + 170, memory_.begin() + 5050));
}

TEST_F(TransferTest, AWrongRemoteKeyFailsTheQueuePairAndTellsAll) {
  ibv_sge sge = buffer(0, 16);
  ibv_send_wr request = write_request(&sge, 5000);
  request.wr.rdma.rkey ^= 0x5500;
  ASSERT_EQ(post(request), 0);
  EXPECT_EQ(next_completion().status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_TRUE(eventually([&] { return state_of(qps_[0]) == IBV_QPS_ERR; }));
  request = write_request(&sge, 5000);
  request.wr_id = 55;
  ASSERT_EQ(post(request), 0) << "accepted, and flushed";
  const ibv_wc wc = next_completion();
  EXPECT_EQ(wc.wr_id, 55U);
  EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);

  mrc_async_event event{};
  ASSERT_TRUE(readable(verbs_->async_fd, 60'000));
  ASSERT_EQ(mrc_get_async_event(context_, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_FATAL);
  EXPECT_TRUE(event.element.qp == qps_[0] || event.element.qp == qps_[1]);
  mrc_ack_async_event(&event);
}

TEST_F(TransferTest, DestroyWaitsForTheAcknowledgementOfAnEvent) {
  ibv_sge sge = buffer(0, 16);
  ibv_send_wr request = write_request(&sge, 5000);
  request.wr.rdma.rkey ^= 0x5500;
  ASSERT_EQ(post(request), 0);
  mrc_async_event event{};
  do {
    ASSERT_TRUE(readable(verbs_->async_fd, 60'000));
    ASSERT_EQ(mrc_get_async_event(context_, &event), 0);
    if (event.element.qp != qps_[0]) mrc_ack_async_event(&event);
  } while (event.element.qp != qps_[0]);
  std::atomic<bool> gone{false};
  std::thread destroyer([&] {
    EXPECT_EQ(mrc_destroy_qp(qps_[0]), 0);
    gone = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(gone);
  mrc_ack_async_event(&event);
  destroyer.join();
  qps_[0] = nullptr;
}

TEST_F(TransferTest, ErrorFlushesReceives) {
  ASSERT_EQ(post_receives(qps_[1], 3), 0);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(mrc_modify_qp(qps_[1], &attr, IBV_QP_STATE, nullptr, 0), 0);
  for (std::uint64_t i = 0; i < 3; ++i) {
    const ibv_wc wc = next_completion();
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(wc.wr_id, 1000 + i);
  }
}

TEST_F(TransferTest, NothingIsPostedInResetOrWhenTheQueueIsFull) {
  ibv_recv_wr receive{};
  ibv_recv_wr* bad = nullptr;
  mrc_qp_init_attr init{};
  ASSERT_EQ(mrc_query_qp(qps_[1], nullptr, 0, nullptr, 0, &init), 0);
  for (unsigned i = 0; i < init.cap.max_recv_wr; ++i)
    ASSERT_EQ(why(mrc_post_recv(qps_[1], &receive, &bad)), 0);
  EXPECT_EQ(why(mrc_post_recv(qps_[1], &receive, &bad)), ENOMEM);
  EXPECT_EQ(bad, &receive);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  for (mrc_qp* qp : qps_)
    ASSERT_EQ(mrc_modify_qp(qp, &attr, IBV_QP_STATE, nullptr, 0), 0);
  EXPECT_EQ(why(mrc_post_recv(qps_[1], &receive, &bad)), EINVAL);
  ibv_sge sge = buffer(0, 16);
  ibv_send_wr request = write_request(&sge, 5000);
  EXPECT_EQ(post(request), EINVAL);
}

TEST_F(TransferTest, AChannelTellsOfCompletions) {
  int fd = -1;
  ASSERT_EQ(why(mrc_get_comp_channel_fd(channel_, &fd)), 0);
  EXPECT_FALSE(readable(fd));
  ASSERT_EQ(mrc_req_notify_cq(cq_, 0), 0);
  ibv_sge sge = buffer(0, 16);
  ibv_send_wr request = write_request(&sge, 5000);
  ASSERT_EQ(post(request), 0);
  ASSERT_TRUE(readable(fd, 60'000));
  mrc_cq* told = nullptr;
  void* cookie = nullptr;
  ASSERT_EQ(mrc_get_cq_event(channel_, &told, &cookie), 0);
  EXPECT_EQ(told, cq_);
  EXPECT_EQ(cookie, this);
  EXPECT_FALSE(readable(fd));
  EXPECT_EQ(next_completion().status, IBV_WC_SUCCESS);
  ASSERT_EQ(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
  EXPECT_EQ(mrc_get_cq_event(channel_, &told, &cookie), -1);
  EXPECT_EQ(errno, EAGAIN);
  mrc_ack_cq_events(cq_, 1);
}

TEST_F(TransferTest, ASolicitedNotificationSleepsThroughWhatNobodySolicits) {
  int fd = -1;
  ASSERT_EQ(why(mrc_get_comp_channel_fd(channel_, &fd)), 0);
  ASSERT_EQ(post_receives(qps_[1], 2), 0);
  ASSERT_EQ(mrc_req_notify_cq(cq_, 1), 0);
  ibv_sge sge = buffer(0, 16);
  ibv_send_wr request = write_request(&sge, 5000);
  ASSERT_EQ(post(request), 0);
  EXPECT_EQ(next_completion().status, IBV_WC_SUCCESS);
  EXPECT_FALSE(readable(fd));
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  ASSERT_EQ(post(request), 0);
  EXPECT_EQ(next_completion().status, IBV_WC_SUCCESS);
  EXPECT_EQ(next_completion().status, IBV_WC_SUCCESS);
  EXPECT_FALSE(readable(fd));
  request.send_flags |= IBV_SEND_SOLICITED;
  ASSERT_EQ(post(request), 0);
  ASSERT_TRUE(readable(fd, 60'000));
  mrc_cq* told = nullptr;
  void* cookie = nullptr;
  ASSERT_EQ(mrc_get_cq_event(channel_, &told, &cookie), 0);
  mrc_ack_cq_events(told, 1);
}

TEST_F(TransferTest, AWaitingThreadIsWoken) {
  ASSERT_EQ(mrc_req_notify_cq(cq_, 0), 0);
  std::thread waiter([&] {
    mrc_cq* told = nullptr;
    void* cookie = nullptr;
    EXPECT_EQ(mrc_get_cq_event(channel_, &told, &cookie), 0);
    mrc_ack_cq_events(told, 1);
  });
  ibv_sge sge = buffer(0, 16);
  ibv_send_wr request = write_request(&sge, 5000);
  EXPECT_EQ(post(request), 0);
  waiter.join();
}

TEST_F(TransferTest, DestroyCqWaitsForItsEvents) {
  mrc_cq* cq = mrc_create_cq(context_, 16, nullptr, channel_, 0);
  ASSERT_NE(cq, nullptr);
  mrc_qp_init_attr attr = init_attr();
  attr.send_cq = attr.recv_cq = cq;
  mrc_qp* qp = mrc_create_qp(context_, &attr);
  ASSERT_NE(qp, nullptr);
  ASSERT_EQ(to_init(qp), 0);
  ASSERT_EQ(mrc_req_notify_cq(cq, 0), 0);
  ibv_recv_wr receive{};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(why(mrc_post_recv(qp, &receive, &bad)), 0);
  ibv_qp_attr error{};
  error.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(mrc_modify_qp(qp, &error, IBV_QP_STATE, nullptr, 0), 0);
  mrc_cq* told = nullptr;
  void* cookie = nullptr;
  ASSERT_EQ(mrc_get_cq_event(channel_, &told, &cookie), 0);
  ASSERT_EQ(told, cq);
  ASSERT_EQ(mrc_destroy_qp(qp), 0);
  std::atomic<bool> gone{false};
  std::thread destroyer([&] {
    EXPECT_EQ(mrc_destroy_cq(cq), 0);
    gone = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(gone);
  mrc_ack_cq_events(cq, 1);
  destroyer.join();
}

TEST_F(TransferTest, AsyncEventsDoNotBlockWhereTheProgramSaysSo) {
  ASSERT_EQ(fcntl(verbs_->async_fd, F_SETFL, O_NONBLOCK), 0);
  mrc_async_event event{};
  EXPECT_EQ(mrc_get_async_event(context_, &event), -1);
  EXPECT_EQ(errno, EAGAIN);
  ibv_async_event verbs_event{};
  EXPECT_EQ(ibv_get_async_event(verbs_, &verbs_event), -1);
  EXPECT_EQ(errno, EAGAIN);
}

}  // namespace
}  // namespace mrc::api_test
