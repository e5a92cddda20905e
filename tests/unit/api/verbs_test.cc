// The verbs functions as programs call them.
#include <arpa/inet.h>
#include <fcntl.h>
#include <mrc_ctl.h>
#include <sys/mman.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <thread>

#include "unit/api/api_fixture.h"

namespace mrc::api_test {
namespace {

// ibv_reg_mr is a macro that mixes two enumerations.
constexpr int kLocalWrite = IBV_ACCESS_LOCAL_WRITE;

class VerbsTest : public DeviceTest {
 protected:
  ibv_qp_init_attr init_attr(ibv_cq* cq) {
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq;
    attr.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1};
    attr.qp_type = IBV_QPT_RC;
    return attr;
  }

  std::array<ibv_qp*, 2> make_two(ibv_cq* cq) {
    std::array<ibv_qp*, 2> qps{};
    for (ibv_qp*& qp : qps) {
      ibv_qp_init_attr attr = init_attr(cq);
      qp = ibv_create_qp(pd_, &attr);
      EXPECT_NE(qp, nullptr);
    }
    return qps;
  }

  int connect(ibv_qp* qp, ibv_qp* peer) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    int error = ibv_modify_qp(qp, &attr,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (error != 0) return error;
    attr = {};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = peer->qp_num;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    if (ibv_query_gid(verbs_, 1, 0, &attr.ah_attr.grh.dgid) != 0) return errno;
    error = ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (error != 0) return error;
    attr = {};
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = timeout_;
    attr.retry_cnt = retry_count_;
    attr.rnr_retry = 7;
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                             IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
  }

  std::uint8_t timeout_ = 14;
  std::uint8_t retry_count_ = 7;
};

TEST_F(VerbsTest, TheListEndsWithNull) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list[count], nullptr);
  EXPECT_STREQ(ibv_get_device_name(list[0]), "mrc0");
  EXPECT_NE(ibv_get_device_guid(list[0]), 0U);
  EXPECT_EQ(list[0], verbs_->device) << "a device stays the same";
  ibv_free_device_list(list);
  ibv_free_device_list(nullptr);
  EXPECT_EQ(ibv_get_device_name(nullptr), nullptr);
  EXPECT_EQ(ibv_open_device(nullptr), nullptr);
}

TEST_F(VerbsTest, PortOneIsActive) {
  ibv_port_attr attr{};
  ASSERT_EQ(ibv_query_port(verbs_, 1, &attr), 0);
  EXPECT_EQ(attr.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(attr.gid_tbl_len, 4);
  EXPECT_EQ(attr.active_mtu, IBV_MTU_4096);
  EXPECT_GT(attr.active_speed, 0);
  EXPECT_EQ(ibv_query_port(verbs_, 4, &attr), 0) << "each plane has a port of its own";
  EXPECT_EQ(ibv_query_port(verbs_, 0, &attr), EINVAL);
  EXPECT_EQ(ibv_query_port(verbs_, 5, &attr), EINVAL);
}

TEST_F(VerbsTest, APortThatAControllerDisabledReadsAsDown) {
  mrc_context* context = mrc_create_context(verbs_, nullptr);
  ASSERT_NE(context, nullptr);
  const auto state_of = [&](std::uint8_t port) {
    ibv_port_attr attr{};
    EXPECT_EQ(ibv_query_port(verbs_, port, &attr), 0);
    return attr.state;
  };
  const auto set = [&](std::uint8_t port, mrc_ctl_port_admin_state state) {
    mrc_ctl_port_attr attr{.port_admin_state = state};
    return why(mrc_ctl_modify_port(context, port, &attr, MRC_CTL_PORT_ADMIN_STATE));
  };
  for (const std::uint8_t port : {std::uint8_t{1}, std::uint8_t{3}}) {
    ASSERT_EQ(set(port, MRC_CTL_PORT_ADMIN_DISABLED), 0);
    EXPECT_EQ(state_of(port), IBV_PORT_DOWN) << int{port};
    EXPECT_EQ(state_of(2), IBV_PORT_ACTIVE);
    ASSERT_EQ(set(port, MRC_CTL_PORT_ADMIN_ENABLED), 0);
    EXPECT_TRUE(eventually([&] { return state_of(port) == IBV_PORT_ACTIVE; })) << int{port};
  }
  EXPECT_EQ(why(mrc_destroy_context(context)), 0);
}

#undef ibv_query_port
TEST_F(VerbsTest, TheOldQueryPortWritesTheOldStructureOnly) {
  std::array<std::byte, sizeof(ibv_port_attr)> room;
  room.fill(std::byte{0xee});
  ASSERT_EQ(ibv_query_port(verbs_, 1, reinterpret_cast<_compat_ibv_port_attr*>(room.data())), 0);
  const std::size_t end = offsetof(ibv_port_attr, port_cap_flags2);
  for (std::size_t i = end; i < room.size(); ++i)
    EXPECT_EQ(room.at(i), std::byte{0xee}) << i;
  EXPECT_NE(room[0], std::byte{0xee});
}

TEST_F(VerbsTest, AllGidsAreTheAddressOfTheFirstPort) {
  for (int index = 0; index < 4; ++index) {
    ibv_gid gid{};
    ASSERT_EQ(ibv_query_gid(verbs_, 1, index, &gid), 0);
    EXPECT_EQ(gid.raw[10], 0xff);
    EXPECT_EQ(gid.raw[12], 127);
    ibv_gid_entry entry{};
    ASSERT_EQ(ibv_query_gid_ex(verbs_, 1, static_cast<std::uint32_t>(index), &entry, 0), 0);
    EXPECT_EQ(std::memcmp(&entry.gid, &gid, sizeof gid), 0);
    EXPECT_EQ(entry.gid_type, static_cast<unsigned>(IBV_GID_TYPE_ROCE_V2));
  }
  ibv_gid gid{};
  EXPECT_EQ(ibv_query_gid(verbs_, 1, 4, &gid), -1);
  EXPECT_EQ(ibv_query_gid(verbs_, 1, -1, &gid), -1);
  EXPECT_EQ(ibv_query_gid(verbs_, 9, 0, &gid), -1);
  EXPECT_EQ(ibv_query_gid(verbs_, 1, 0, nullptr), -1);
  EXPECT_EQ(ibv_query_gid(nullptr, 1, 0, &gid), -1);
  ibv_gid_entry entry{};
  EXPECT_EQ(ibv_query_gid_ex(verbs_, 1, 4, &entry, 0), ENODATA);
  std::array<ibv_gid_entry, 4> table{};
  EXPECT_EQ(ibv_query_gid_table(verbs_, table.data(), table.size(), 0), 4);
  EXPECT_EQ(ibv_query_gid_table(verbs_, table.data(), 3, 0), -EINVAL);
}

TEST_F(VerbsTest, DeviceAttributes) {
  ibv_device_attr attr{};
  ASSERT_EQ(ibv_query_device(verbs_, &attr), 0);
  EXPECT_EQ(attr.phys_port_cnt, 1);
  EXPECT_EQ(attr.atomic_cap, IBV_ATOMIC_NONE);
  EXPECT_EQ(ibv_query_device(verbs_, nullptr), EINVAL);
  EXPECT_EQ(ibv_query_device(nullptr, &attr), EINVAL);
  ibv_device_attr_ex extended{};
  ASSERT_EQ(ibv_query_device_ex(verbs_, nullptr, &extended), 0);
  EXPECT_EQ(extended.orig_attr.max_qp, attr.max_qp);
  std::uint16_t pkey = 0;
  ASSERT_EQ(ibv_query_pkey(verbs_, 1, 0, &pkey), 0);
  EXPECT_EQ(ibv_get_pkey_index(verbs_, 1, pkey), 0);
  EXPECT_EQ(ibv_query_pkey(verbs_, 1, 1, &pkey), -1);
}

TEST_F(VerbsTest, WhatCannotBeRegisteredIsRefused) {
  std::vector<std::uint8_t> memory(8192);
  const auto error_of = [&](void* address, std::size_t length, unsigned access) {
    errno = 0;
    ibv_mr* mr = ibv_reg_mr_iova2(pd_, address, length, 0x1000, access);
    const int error = errno;
    if (mr == nullptr) return error;
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    return 0;
  };
  EXPECT_EQ(error_of(memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE), 0);
  EXPECT_EQ(error_of(memory.data(), 0, IBV_ACCESS_LOCAL_WRITE), EINVAL);
  EXPECT_EQ(error_of(memory.data(), SIZE_MAX, IBV_ACCESS_LOCAL_WRITE), EINVAL);
  EXPECT_EQ(error_of(nullptr, 100, IBV_ACCESS_LOCAL_WRITE), EFAULT);
  EXPECT_EQ(error_of(memory.data(), 10, IBV_ACCESS_REMOTE_WRITE), EINVAL) << "needs local write";
  EXPECT_EQ(error_of(memory.data(), 10, 1U << 12), EINVAL);
  EXPECT_EQ(error_of(memory.data(), 10, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND), EOPNOTSUPP);
  EXPECT_EQ(error_of(memory.data(), 10, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING), 0);
  void* hole = mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(hole, MAP_FAILED);
  ASSERT_EQ(munmap(hole, 8192), 0);
  EXPECT_EQ(error_of(hole, 8192, IBV_ACCESS_LOCAL_WRITE), EFAULT);
  EXPECT_EQ(ibv_reg_mr(nullptr, memory.data(), 10, kLocalWrite), nullptr);
  EXPECT_EQ(ibv_reg_dmabuf_mr(pd_, 0, 10, 0, 0, 0), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(ibv_dereg_mr(nullptr), EINVAL);
}

// The peer's first write would be a signal otherwise.
TEST_F(VerbsTest, MemoryThatCannotBeWrittenIsNotRegisteredForWriting) {
  constexpr std::size_t kBytes = 8192;
  void* memory = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto error_of = [&](int access) {
    errno = 0;
    ibv_mr* mr = ibv_reg_mr(pd_, memory, kBytes, access);
    const int error = errno;
    if (mr == nullptr) return error;
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    return 0;
  };
  EXPECT_EQ(error_of(kLocalWrite), EFAULT);
  EXPECT_EQ(error_of(kLocalWrite | IBV_ACCESS_REMOTE_WRITE), EFAULT);
  EXPECT_EQ(error_of(0), 0) << "may be sent";
  ASSERT_EQ(mprotect(memory, kBytes, PROT_NONE), 0);
  EXPECT_EQ(error_of(0), EFAULT);
  ASSERT_EQ(mprotect(memory, kBytes, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(error_of(kLocalWrite | IBV_ACCESS_REMOTE_WRITE), 0);
  // NCCL and others ask for all rights at once.
  EXPECT_EQ(error_of(kLocalWrite | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC), 0);
  munmap(memory, kBytes);
}

TEST_F(VerbsTest, ParentsWithChildrenStay) {
  std::vector<std::uint8_t> memory(64);
  ibv_mr* mr = ibv_reg_mr(pd_, memory.data(), memory.size(), kLocalWrite);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(ibv_dealloc_pd(pd_), EBUSY);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  ibv_comp_channel* channel = ibv_create_comp_channel(verbs_);
  ibv_cq* cq = ibv_create_cq(verbs_, 16, nullptr, channel, 0);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), EBUSY);
  ibv_qp_init_attr attr = init_attr(cq);
  ibv_qp* qp = ibv_create_qp(pd_, &attr);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(ibv_destroy_cq(cq), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(pd_), EBUSY);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

TEST_F(VerbsTest, OnlyReliableConnectionsAreOffered) {
  ibv_cq* cq = ibv_create_cq(verbs_, 16, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  for (const ibv_qp_type type : {IBV_QPT_UD, IBV_QPT_UC, IBV_QPT_RAW_PACKET}) {
    ibv_qp_init_attr attr = init_attr(cq);
    attr.qp_type = type;
    EXPECT_EQ(ibv_create_qp(pd_, &attr), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP) << type;
  }
  ibv_qp_init_attr attr = init_attr(nullptr);
  EXPECT_EQ(ibv_create_qp(pd_, &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_create_qp(pd_, nullptr), nullptr);
  ibv_srq_init_attr srq{};
  EXPECT_EQ(ibv_create_srq(pd_, &srq), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ibv_ah_attr ah{};
  EXPECT_EQ(ibv_create_ah(pd_, &ah), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(ibv_alloc_mw(pd_, IBV_MW_TYPE_1), nullptr);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(VerbsTest, SendsLandInReceives) {
  ibv_cq* cq = ibv_create_cq(verbs_, 64, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  const std::array<ibv_qp*, 2> qps = make_two(cq);
  EXPECT_EQ(ibv_qp_to_qp_ex(qps[0]), nullptr);
  ASSERT_EQ(connect(qps[0], qps[1]), 0);
  ASSERT_EQ(connect(qps[1], qps[0]), 0);
  EXPECT_EQ(qps[0]->state, IBV_QPS_RTS);
  std::vector<std::uint8_t> memory(20'000);
  for (std::size_t i = 0; i < 5000; ++i)
    memory[i] = static_cast<std::uint8_t>(i * 13);
  ibv_mr* mr = ibv_reg_mr(pd_, memory.data(), memory.size(), kLocalWrite);
  ASSERT_NE(mr, nullptr);
  ibv_sge to{.addr = reinterpret_cast<std::uintptr_t>(memory.data()) + 10'000,
             .length = 8000,
             .lkey = mr->lkey};
  ibv_recv_wr receive{.wr_id = 5, .next = nullptr, .sg_list = &to, .num_sge = 1};
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_EQ(ibv_post_recv(qps[1], &receive, &bad_receive), 0);
  ibv_sge from{
      .addr = reinterpret_cast<std::uintptr_t>(memory.data()), .length = 5000, .lkey = mr->lkey};
  ibv_send_wr send{};
  send.sg_list = &from;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND_WITH_IMM;
  send.imm_data = htonl(42);
  send.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(qps[0], &send, &bad), 0);
  for (int i = 0; i < 2; ++i) {
    ibv_wc wc{};
    ASSERT_TRUE(eventually([&] { return ibv_poll_cq(cq, 1, &wc) == 1; }));
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    if (wc.opcode != IBV_WC_RECV) continue;
    EXPECT_EQ(wc.wr_id, 5U);
    EXPECT_EQ(wc.byte_len, 5000U);
    EXPECT_EQ(ntohl(wc.imm_data), 42U);
    EXPECT_TRUE(std::equal(memory.begin(), memory.begin() + 5000, memory.begin() + 10'000));
  }
  send.opcode = IBV_WR_RDMA_READ;
  EXPECT_EQ(ibv_post_send(qps[0], &send, &bad), EOPNOTSUPP);
  EXPECT_EQ(bad, &send);
  for (ibv_qp* qp : qps)
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

// Longer than all retries of these queue pairs take together, which is 2 to 4 s.
TEST_F(VerbsTest, WithRnrRetrySevenASendWaitsForItsReceive) {
  ibv_cq* cq = ibv_create_cq(verbs_, 64, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  const std::array<ibv_qp*, 2> qps = make_two(cq);
  timeout_ = 2;
  retry_count_ = 0;
  ASSERT_EQ(connect(qps[0], qps[1]), 0);
  ASSERT_EQ(connect(qps[1], qps[0]), 0);
  ibv_send_wr send{};
  send.opcode = IBV_WR_SEND_WITH_IMM;
  send.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(qps[0], &send, &bad), 0);
  std::this_thread::sleep_for(std::chrono::seconds(5));
  ibv_wc wc{};
  EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 0) << ibv_wc_status_str(wc.status);
  ibv_recv_wr receive{.wr_id = 5, .next = nullptr, .sg_list = nullptr, .num_sge = 0};
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_EQ(ibv_post_recv(qps[1], &receive, &bad_receive), 0);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(eventually([&] { return ibv_poll_cq(cq, 1, &wc) == 1; }));
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
  }
  for (ibv_qp* qp : qps)
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(VerbsTest, AnEventGoesToTheContextOfItsQueuePair) {
  mrc_context* context = mrc_create_context(verbs_, nullptr);
  ASSERT_NE(context, nullptr);
  ASSERT_EQ(fcntl(verbs_->async_fd, F_SETFL, O_NONBLOCK), 0);
  ibv_cq* cq = ibv_create_cq(verbs_, 64, nullptr, nullptr, 0);
  ibv_qp_init_attr init = init_attr(cq);
  ibv_qp* qp = ibv_create_qp(pd_, &init);
  ASSERT_NE(qp, nullptr);
  ASSERT_EQ(connect(qp, qp), 0);
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_WRITE;
  std::vector<std::uint8_t> memory(64);
  ibv_mr* mr = ibv_reg_mr(pd_, memory.data(), memory.size(), kLocalWrite);
  ASSERT_NE(mr, nullptr);
  ibv_sge sge{
      .addr = reinterpret_cast<std::uintptr_t>(memory.data()), .length = 8, .lkey = mr->lkey};
  request.sg_list = &sge;
  request.num_sge = 1;
  request.wr.rdma.rkey = 0xdead;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(qp, &request, &bad), 0);
  ibv_async_event event{};
  ASSERT_TRUE(eventually([&] { return ibv_get_async_event(verbs_, &event) == 0; }));
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_FATAL);
  EXPECT_EQ(event.element.qp, qp);
  ibv_ack_async_event(&event);
  mrc_async_event other{};
  EXPECT_EQ(mrc_get_async_event(context, &other), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(why(mrc_destroy_context(context)), 0);
}

TEST_F(VerbsTest, AVerbsProgramMustNameItsPeer) {
  ibv_cq* cq = ibv_create_cq(verbs_, 64, nullptr, nullptr, 0);
  ibv_qp_init_attr init = init_attr(cq);
  ibv_qp* qp = ibv_create_qp(pd_, &init);
  ASSERT_NE(qp, nullptr);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 77;
  EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
  attr.port_num = 1;
  ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), 0);
  attr.qp_state = IBV_QPS_RTR;
  EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
  EXPECT_EQ(ibv_modify_qp(qp, nullptr, IBV_QP_STATE), EINVAL);
  ibv_qp_attr now{};
  ibv_qp_init_attr init_now{};
  ASSERT_EQ(ibv_query_qp(qp, &now, IBV_QP_STATE, &init_now), 0);
  EXPECT_EQ(now.qp_state, IBV_QPS_INIT);
  EXPECT_EQ(init_now.cap.max_send_wr, init.cap.max_send_wr);
  EXPECT_EQ(ibv_query_qp(qp, nullptr, IBV_QP_STATE, &init_now), EINVAL);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_resize_cq(cq, 128), 0);
  EXPECT_GE(cq->cqe, 128);
  EXPECT_EQ(ibv_resize_cq(cq, 0), EINVAL);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(VerbsTest, AClosedDeviceLivesUntilItsLastObject) {
  ibv_context* other = ibv_open_device(verbs_->device);
  ASSERT_NE(other, nullptr);
  ibv_pd* pd = ibv_alloc_pd(other);
  ASSERT_NE(pd, nullptr);
  EXPECT_EQ(ibv_close_device(other), 0);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  EXPECT_EQ(ibv_close_device(nullptr), EINVAL);
}

TEST_F(VerbsTest, EveryStatusHasAName) {
  for (int i = 0; i <= IBV_WC_TM_RNDV_INCOMPLETE; ++i)
    EXPECT_STRNE(ibv_wc_status_str(static_cast<ibv_wc_status>(i)), "unknown") << i;
  for (int i = 0; i <= IBV_EVENT_WQ_FATAL; ++i)
    EXPECT_STRNE(ibv_event_type_str(static_cast<ibv_event_type>(i)), "unknown") << i;
  EXPECT_STREQ(ibv_wc_status_str(static_cast<ibv_wc_status>(999)), "unknown");
  EXPECT_STREQ(ibv_event_type_str(static_cast<ibv_event_type>(-5)), "unknown");
  EXPECT_STREQ(ibv_port_state_str(IBV_PORT_ACTIVE), "PORT_ACTIVE");
  EXPECT_EQ(ibv_fork_init(), 0);
}

}  // namespace
}  // namespace mrc::api_test
