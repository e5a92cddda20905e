// A device of the zero configuration, with a state directory and UDP ports of this process alone,
// and everything a test needs to make queue pairs talk to each other in one process.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <mrc.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "support/temporary_directory.h"
#include "unit/api/why.h"

namespace mrc::api_test {

// Set before the first list of devices is made, which reads the configuration once per process.
class PrivateNode {
 public:
  static PrivateNode& instance() {
    static PrivateNode node;
    return node;
  }

  PrivateNode(const PrivateNode&) = delete;
  PrivateNode& operator=(const PrivateNode&) = delete;

 private:
  PrivateNode() {
    setenv("MRC_STATE_DIR", directory_.path().c_str(), 1);
    setenv("XDG_CONFIG_HOME", directory_.path().c_str(), 1);
    setenv("MRC_PORT", std::to_string(10'000 + getpid() % 20'000).c_str(), 1);
    setenv("MRC_LOG_LEVEL", "error", 0);
    unsetenv("MRC_CONFIG");
  }

  mrc::test::TemporaryDirectory directory_;
};

inline constexpr auto kPatience = std::chrono::seconds(60);

// Calls `done` until it is true; false when it takes unreasonably long.
inline bool eventually(const std::function<bool()>& done) {
  const auto limit = std::chrono::steady_clock::now() + kPatience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::yield();
  }
  return true;
}

inline bool readable(int fd, int timeout_ms = 0) {
  pollfd wanted{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&wanted, 1, timeout_ms) == 1;
}

class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    PrivateNode::instance();
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    ASSERT_NE(list, nullptr);
    ASSERT_GE(count, 1);
    verbs_ = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    ASSERT_NE(verbs_, nullptr);
    pd_ = ibv_alloc_pd(verbs_);
    ASSERT_NE(pd_, nullptr);
  }

  void TearDown() override {
    if (pd_ != nullptr) {
      EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    }
    if (verbs_ != nullptr) {
      EXPECT_EQ(ibv_close_device(verbs_), 0);
    }
  }

  ibv_context* verbs_ = nullptr;
  ibv_pd* pd_ = nullptr;
};

// Two queue pairs of one context, each the other's peer once connect() was called.
class MrcTest : public DeviceTest {
 protected:
  static constexpr int kDepth = 256;

  void SetUp() override {
    DeviceTest::SetUp();
    ASSERT_FALSE(HasFatalFailure());
    context_ = mrc_create_context(verbs_, nullptr);
    ASSERT_NE(context_, nullptr);
    ASSERT_EQ(mrc_create_comp_channel(context_, &channel_), 0);
    cq_ = mrc_create_cq(context_, kDepth, this, channel_, 0);
    ASSERT_NE(cq_, nullptr);
    for (mrc_qp*& qp : qps_) {
      mrc_qp_init_attr attr = init_attr();
      qp = mrc_create_qp(context_, &attr);
      ASSERT_NE(qp, nullptr);
    }
    memory_.assign(kMemory, 0);
    mr_ = ibv_reg_mr(pd_, memory_.data(), memory_.size(),
                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    ASSERT_NE(mr_, nullptr);
  }

  void TearDown() override {
    for (mrc_qp* qp : qps_) {
      if (qp != nullptr) {
        EXPECT_EQ(mrc_destroy_qp(qp), 0);
      }
    }
    if (mr_ != nullptr) {
      EXPECT_EQ(ibv_dereg_mr(mr_), 0);
    }
    if (cq_ != nullptr) {
      EXPECT_EQ(mrc_destroy_cq(cq_), 0);
    }
    if (channel_ != nullptr) {
      EXPECT_EQ(mrc_destroy_comp_channel(channel_), 0);
    }
    if (context_ != nullptr) {
      EXPECT_EQ(why(mrc_destroy_context(context_)), 0);
    }
    DeviceTest::TearDown();
  }

  mrc_qp_init_attr init_attr() {
    mrc_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq_;
    attr.cap = {.max_send_wr = 32,
                .max_recv_wr = 32,
                .max_send_sge = 2,
                .max_recv_sge = 1,
                .max_inline_data = 64};
    attr.pd = pd_;
    return attr;
  }

  static int to_init(mrc_qp* qp) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    return mrc_modify_qp(qp, &attr, IBV_QP_STATE, nullptr, 0);
  }

  static constexpr int kPeerMask =
      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

  ibv_qp_attr peer_attr(mrc_qp* peer) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_4096;
    EXPECT_EQ(why(mrc_get_qpn(peer, &attr.dest_qp_num)), 0);
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.sgid_index = 3;
    EXPECT_EQ(ibv_query_gid(verbs_, 1, 3, &attr.ah_attr.grh.dgid), 0);
    return attr;
  }

  int to_rtr(mrc_qp* qp, mrc_qp* peer) {
    ibv_qp_attr attr = peer_attr(peer);
    return mrc_modify_qp(qp, &attr, kPeerMask, nullptr, 0);
  }

  static int to_rts(mrc_qp* qp) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    return mrc_modify_qp(qp, &attr, IBV_QP_STATE, nullptr, 0);
  }

  static ibv_qp_state state_of(mrc_qp* qp) {
    ibv_qp_attr attr{};
    EXPECT_EQ(mrc_query_qp(qp, &attr, IBV_QP_STATE, nullptr, 0, nullptr), 0);
    return attr.qp_state;
  }

  void connect() {
    for (mrc_qp* qp : qps_)
      ASSERT_EQ(to_init(qp), 0);
    ASSERT_EQ(to_rtr(qps_[0], qps_[1]), 0);
    ASSERT_EQ(to_rtr(qps_[1], qps_[0]), 0);
    for (mrc_qp* qp : qps_)
      ASSERT_EQ(to_rts(qp), 0);
  }

  ibv_sge buffer(std::size_t offset, std::uint32_t length) {
    return {.addr = reinterpret_cast<std::uintptr_t>(memory_.data() + offset),
            .length = length,
            .lkey = mr_->lkey};
  }

  ibv_send_wr write_request(ibv_sge* sge, std::size_t to_offset) {
    ibv_send_wr request{};
    request.wr_id = 7;
    request.sg_list = sge;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(memory_.data() + to_offset);
    request.wr.rdma.rkey = mr_->rkey;
    return request;
  }

  // The next completion; a status of its own when none comes.
  ibv_wc next_completion() {
    ibv_wc wc{};
    wc.status = IBV_WC_GENERAL_ERR;
    eventually([&] { return mrc_poll_cq(cq_, 1, &wc) != 0; });
    return wc;
  }

  static constexpr std::size_t kMemory = std::size_t{1} << 20;

  mrc_context* context_ = nullptr;
  mrc_comp_channel* channel_ = nullptr;
  mrc_cq* cq_ = nullptr;
  std::array<mrc_qp*, 2> qps_{};
  std::vector<std::uint8_t> memory_;
  ibv_mr* mr_ = nullptr;
};

// A pointer that is readable and no handle of any kind.
template <typename Handle>
Handle* not_a_handle() {
  static std::array<std::uint64_t, 64> zeros{};
  return reinterpret_cast<Handle*>(zeros.data());
}

// A handle of another kind in the place of this one.
template <typename Handle, typename Other>
Handle* wrong_kind(Other* other) {
  return reinterpret_cast<Handle*>(other);
}

}  // namespace mrc::api_test
