// Every argument of every call, wrong one at a time: the errno that docs/api.md says, and nothing
// changed.
#include <cerrno>

#include "unit/api/api_fixture.h"

namespace mrc::api_test {
namespace {

// For calls that return a pointer.
template <typename Pointer>
int error_of(Pointer* made) {
  return made == nullptr ? errno : 0;
}

class ArgumentsTest : public MrcTest {};

TEST_F(ArgumentsTest, QueryVersionSkipsNullPointers) {
  mrc_query_version(nullptr, nullptr, nullptr, nullptr);
  std::uint32_t current = 0;
  std::uint32_t last = 1;
  std::uint32_t vendor = 0;
  std::uint32_t last_vendor = 1;
  mrc_query_version(&current, &last, &vendor, &last_vendor);
  EXPECT_EQ(current, MRC_API_VER(1, 0, 1));
  EXPECT_EQ(last, 0U);
  EXPECT_EQ(vendor, MRC_API_VER(1, 0, 0));
  EXPECT_EQ(last_vendor, 0U);
}

TEST_F(ArgumentsTest, QueryDevice) {
  mrc_device_attr attr{};
  int supported = -1;
  EXPECT_EQ(why(mrc_query_device(nullptr, &attr, &supported)), EINVAL);
  EXPECT_EQ(why(mrc_query_device(verbs_, nullptr, &supported)), EINVAL);
  EXPECT_EQ(why(mrc_query_device(verbs_, &attr, nullptr)), EINVAL);
  EXPECT_EQ(supported, -1);
  ASSERT_EQ(why(mrc_query_device(verbs_, &attr, &supported)), 0);
  EXPECT_EQ(supported, 1);
  EXPECT_EQ(attr.mrc_protocol_version, 1U);
  EXPECT_GE(attr.wimm_attr.max_wimm, 256);
  EXPECT_GE(attr.wimm_attr.max_wimm_dest, 256);
  EXPECT_GT(attr.mpr_attr.max_mpr, 0);
  EXPECT_EQ(attr.mpr_attr.mpr_resolution, 1);
  EXPECT_GT(attr.qp_attr.max_qp_hint, 0U);
}

TEST_F(ArgumentsTest, ADeviceThatIsNotOursHasNoMrc) {
  ibv_device strange_device{};
  ibv_context strange{};
  strange.device = &strange_device;
  mrc_device_attr attr{};
  attr.cap = 77;
  int supported = -1;
  EXPECT_EQ(why(mrc_query_device(&strange, &attr, &supported)), 0);
  EXPECT_EQ(supported, 0);
  EXPECT_EQ(attr.cap, 77U);
  EXPECT_EQ(error_of(mrc_create_context(&strange, nullptr)), EOPNOTSUPP);
}

TEST_F(ArgumentsTest, QueryDeviceEx) {
  mrc_device_attr attr{};
  int supported = 0;
  EXPECT_EQ(why(mrc_query_device_ex(nullptr, nullptr, &attr, &supported)), EINVAL);
  EXPECT_EQ(why(mrc_query_device_ex(verbs_, not_a_handle<mrc_context>(), &attr, &supported)),
            EINVAL);
  EXPECT_EQ(why(mrc_query_device_ex(verbs_, context_, nullptr, &supported)), EINVAL);
  EXPECT_EQ(why(mrc_query_device_ex(verbs_, context_, &attr, nullptr)), EINVAL);
  ibv_context* other = ibv_open_device(verbs_->device);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(why(mrc_query_device_ex(other, context_, &attr, &supported)), EINVAL);
  EXPECT_EQ(ibv_close_device(other), 0);
  EXPECT_EQ(why(mrc_query_device_ex(nullptr, context_, &attr, &supported)), 0);
  EXPECT_EQ(why(mrc_query_device_ex(verbs_, nullptr, &attr, &supported)), 0);
  EXPECT_EQ(why(mrc_query_device_ex(verbs_, context_, &attr, &supported)), 0);
  EXPECT_EQ(supported, 1);
}

TEST_F(ArgumentsTest, CreateContextTakesAnyVersionUpToOurs) {
  EXPECT_EQ(error_of(mrc_create_context(nullptr, nullptr)), EINVAL);
  for (const std::uint32_t version :
       {0U, 1U, MRC_API_VER(1, 0, 0), MRC_API_CURRENT_VERSION, MRC_API_VER_LATEST}) {
    mrc_context_attr attr{.mrc_api_version_used = version, .mrc_vendor_api_version_used = 0};
    mrc_context* made = mrc_create_context(verbs_, &attr);
    ASSERT_NE(made, nullptr) << version;
    EXPECT_EQ(why(mrc_destroy_context(made)), 0);
  }
  mrc_context_attr newer{.mrc_api_version_used = MRC_API_VER(1, 0, 2)};
  EXPECT_EQ(error_of(mrc_create_context(verbs_, &newer)), EINVAL);
  mrc_context_attr newer_vendor{.mrc_api_version_used = 0,
                                .mrc_vendor_api_version_used = MRC_API_VER(1, 0, 1)};
  EXPECT_EQ(error_of(mrc_create_context(verbs_, &newer_vendor)), EINVAL);
}

TEST_F(ArgumentsTest, DestroyContext) {
  EXPECT_EQ(why(mrc_destroy_context(nullptr)), EINVAL);
  EXPECT_EQ(why(mrc_destroy_context(not_a_handle<mrc_context>())), EINVAL);
  EXPECT_EQ(why(mrc_destroy_context(wrong_kind<mrc_context>(cq_))), EINVAL);
  EXPECT_EQ(why(mrc_destroy_context(context_)), EBUSY);
}

TEST_F(ArgumentsTest, CompChannels) {
  mrc_comp_channel* made = nullptr;
  EXPECT_EQ(mrc_create_comp_channel(nullptr, &made), EINVAL);
  EXPECT_EQ(mrc_create_comp_channel(not_a_handle<mrc_context>(), &made), EINVAL);
  EXPECT_EQ(mrc_create_comp_channel(context_, nullptr), EINVAL);
  EXPECT_EQ(made, nullptr);
  int fd = -7;
  EXPECT_EQ(why(mrc_get_comp_channel_fd(nullptr, &fd)), EINVAL);
  EXPECT_EQ(why(mrc_get_comp_channel_fd(wrong_kind<mrc_comp_channel>(cq_), &fd)), EINVAL);
  EXPECT_EQ(why(mrc_get_comp_channel_fd(channel_, nullptr)), EINVAL);
  EXPECT_EQ(fd, -7);
  EXPECT_EQ(mrc_destroy_comp_channel(nullptr), EINVAL);
  EXPECT_EQ(mrc_destroy_comp_channel(wrong_kind<mrc_comp_channel>(context_)), EINVAL);
  EXPECT_EQ(mrc_destroy_comp_channel(channel_), EBUSY);
}

TEST_F(ArgumentsTest, CreateCq) {
  EXPECT_EQ(error_of(mrc_create_cq(nullptr, 16, nullptr, nullptr, 0)), EINVAL);
  EXPECT_EQ(error_of(mrc_create_cq(wrong_kind<mrc_context>(cq_), 16, nullptr, nullptr, 0)), EINVAL);
  for (const int depth : {0, -1, INT32_MIN, INT32_MAX})
    EXPECT_EQ(error_of(mrc_create_cq(context_, depth, nullptr, nullptr, 0)), EINVAL) << depth;
  EXPECT_EQ(error_of(mrc_create_cq(context_, 16, nullptr, not_a_handle<mrc_comp_channel>(), 0)),
            EINVAL);
  for (const int vector : {-1, verbs_->num_comp_vectors, INT32_MAX})
    EXPECT_EQ(error_of(mrc_create_cq(context_, 16, nullptr, channel_, vector)), EINVAL) << vector;
}

TEST_F(ArgumentsTest, HandlesOfAnotherContextAreRefused) {
  mrc_context* other = mrc_create_context(verbs_, nullptr);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(error_of(mrc_create_cq(other, 16, nullptr, channel_, 0)), EINVAL);
  mrc_qp_init_attr attr = init_attr();
  EXPECT_EQ(error_of(mrc_create_qp(other, &attr)), EINVAL);
  mrc_qp_hint_init_attr hint_attr{};
  mrc_qp_hint* hint = mrc_create_qp_hint(other, &hint_attr);
  ASSERT_NE(hint, nullptr);
  ibv_qp_attr init{};
  init.qp_state = IBV_QPS_INIT;
  mrc_qp_attr mrc{};
  mrc.qp_hint = hint;
  EXPECT_EQ(mrc_modify_qp(qps_[0], &init, IBV_QP_STATE, &mrc, MRC_QP_HINT), EINVAL);
  EXPECT_EQ(state_of(qps_[0]), IBV_QPS_RESET);
  EXPECT_EQ(why(mrc_destroy_qp_hint(hint)), 0);
  EXPECT_EQ(why(mrc_destroy_context(other)), 0);
}

TEST_F(ArgumentsTest, PollCq) {
  ibv_wc wc{};
  EXPECT_LT(mrc_poll_cq(nullptr, 1, &wc), 0);
  EXPECT_LT(mrc_poll_cq(wrong_kind<mrc_cq>(channel_), 1, &wc), 0);
  EXPECT_LT(mrc_poll_cq(cq_, -1, &wc), 0);
  EXPECT_LT(mrc_poll_cq(cq_, 1, nullptr), 0);
  EXPECT_EQ(mrc_poll_cq(cq_, 0, nullptr), 0);
  EXPECT_EQ(mrc_poll_cq(cq_, 1, &wc), 0);
}

TEST_F(ArgumentsTest, CqEvents) {
  mrc_cq* cq = nullptr;
  void* cookie = nullptr;
  EXPECT_EQ(mrc_req_notify_cq(nullptr, 0), EINVAL);
  EXPECT_EQ(mrc_req_notify_cq(wrong_kind<mrc_cq>(context_), 0), EINVAL);
  EXPECT_EQ(mrc_get_cq_event(nullptr, &cq, &cookie), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(mrc_get_cq_event(channel_, nullptr, &cookie), -1);
  EXPECT_EQ(mrc_get_cq_event(channel_, &cq, nullptr), -1);
  mrc_ack_cq_events(nullptr, 1);
  mrc_ack_cq_events(wrong_kind<mrc_cq>(context_), 1);
}

TEST_F(ArgumentsTest, DestroyCq) {
  EXPECT_EQ(mrc_destroy_cq(nullptr), EINVAL);
  EXPECT_EQ(mrc_destroy_cq(wrong_kind<mrc_cq>(context_)), EINVAL);
  EXPECT_EQ(mrc_destroy_cq(cq_), EBUSY);
}

TEST_F(ArgumentsTest, Hints) {
  mrc_qp_hint_init_attr init{};
  EXPECT_EQ(error_of(mrc_create_qp_hint(nullptr, &init)), EINVAL);
  EXPECT_EQ(error_of(mrc_create_qp_hint(context_, nullptr)), EINVAL);
  init.attr.num_qps_per_peer = -1;
  EXPECT_EQ(error_of(mrc_create_qp_hint(context_, &init)), EINVAL);
  init.attr = {.num_qps_per_peer = 2, .num_send_peers = 3, .num_remote_recv_peers = 4};
  mrc_qp_hint* hint = mrc_create_qp_hint(context_, &init);
  ASSERT_NE(hint, nullptr);

  mrc_qp_hint_attr attr{};
  constexpr int kAll = MRC_QP_HINT_NUM_QPS_PER_PEER | MRC_QP_HINT_NUM_SEND_PEERS |
                       MRC_QP_HINT_NUM_REMOTE_RECV_PEERS | MRC_QP_HINT_VENDOR_CFG;
  EXPECT_EQ(why(mrc_query_qp_hint(nullptr, &attr, kAll)), EINVAL);
  EXPECT_EQ(why(mrc_query_qp_hint(wrong_kind<mrc_qp_hint>(cq_), &attr, kAll)), EINVAL);
  EXPECT_EQ(why(mrc_query_qp_hint(hint, nullptr, kAll)), EINVAL);
  EXPECT_EQ(why(mrc_query_qp_hint(hint, &attr, 1 << 5)), EINVAL);
  EXPECT_EQ(why(mrc_modify_qp_hint(nullptr, &attr, kAll)), EINVAL);
  EXPECT_EQ(why(mrc_modify_qp_hint(hint, nullptr, kAll)), EINVAL);
  EXPECT_EQ(why(mrc_modify_qp_hint(hint, &attr, 1 << 5)), EINVAL);
  mrc_qp_hint_attr bad{};
  bad.num_send_peers = -5;
  EXPECT_EQ(why(mrc_modify_qp_hint(hint, &bad, MRC_QP_HINT_NUM_SEND_PEERS)), EINVAL);
  bad.num_send_peers = 0;
  bad.num_remote_recv_peers = -5;
  EXPECT_EQ(why(mrc_modify_qp_hint(hint, &bad, MRC_QP_HINT_NUM_REMOTE_RECV_PEERS)), EINVAL);

  ASSERT_EQ(why(mrc_query_qp_hint(hint, &attr, kAll)), 0);
  EXPECT_EQ(attr.num_send_peers, 3);
  attr.num_send_peers = 30;
  attr.num_qps_per_peer = 20;
  ASSERT_EQ(why(mrc_modify_qp_hint(hint, &attr, MRC_QP_HINT_NUM_SEND_PEERS)), 0);
  ASSERT_EQ(why(mrc_query_qp_hint(hint, &attr, kAll)), 0);
  EXPECT_EQ(attr.num_send_peers, 30);
  EXPECT_EQ(attr.num_qps_per_peer, 2) << "not in the mask";

  EXPECT_EQ(why(mrc_destroy_qp_hint(nullptr)), EINVAL);
  EXPECT_EQ(why(mrc_destroy_qp_hint(wrong_kind<mrc_qp_hint>(cq_))), EINVAL);
  EXPECT_EQ(why(mrc_destroy_qp_hint(hint)), 0);
}

TEST_F(ArgumentsTest, CreateQp) {
  mrc_qp_init_attr attr = init_attr();
  EXPECT_EQ(error_of(mrc_create_qp(nullptr, &attr)), EINVAL);
  EXPECT_EQ(error_of(mrc_create_qp(wrong_kind<mrc_context>(cq_), &attr)), EINVAL);
  EXPECT_EQ(error_of(mrc_create_qp(context_, nullptr)), EINVAL);
  const auto refused = [&](const std::function<void(mrc_qp_init_attr&)>& spoil) {
    mrc_qp_init_attr spoiled = init_attr();
    spoil(spoiled);
    return error_of(mrc_create_qp(context_, &spoiled));
  };
  EXPECT_EQ(refused([](auto& a) { a.send_cq = nullptr; }), EINVAL);
  EXPECT_EQ(refused([](auto& a) { a.recv_cq = nullptr; }), EINVAL);
  EXPECT_EQ(refused([](auto& a) { a.send_cq = not_a_handle<mrc_cq>(); }), EINVAL);
  EXPECT_EQ(refused([](auto& a) { a.pd = nullptr; }), EINVAL);
  EXPECT_EQ(refused([](auto& a) { a.cap.max_send_wr = 1U << 30; }), EINVAL);
  EXPECT_EQ(refused([](auto& a) { a.cap.max_recv_wr = UINT32_MAX; }), EINVAL);
  EXPECT_EQ(refused([](auto& a) { a.cap.max_send_sge = 1000; }), EINVAL);
  EXPECT_EQ(refused([](auto& a) { a.cap.max_recv_sge = 1000; }), EINVAL);
  EXPECT_EQ(refused([](auto& a) { a.cap.max_inline_data = 1U << 20; }), EINVAL);
  EXPECT_EQ(refused([](auto& a) { a.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ; }), EOPNOTSUPP);
  EXPECT_EQ(refused([](auto& a) { a.protocol_version = static_cast<mrc_protocol_version>(2); }),
            EINVAL);
  ibv_context* other = ibv_open_device(verbs_->device);
  ibv_pd* other_pd = ibv_alloc_pd(other);
  ASSERT_NE(other_pd, nullptr);
  EXPECT_EQ(refused([&](auto& a) { a.pd = other_pd; }), EINVAL);
  EXPECT_EQ(ibv_dealloc_pd(other_pd), 0);
  EXPECT_EQ(ibv_close_device(other), 0);
}

TEST_F(ArgumentsTest, QpnDestroyAndQuery) {
  std::uint32_t qpn = 0;
  EXPECT_EQ(why(mrc_get_qpn(nullptr, &qpn)), EINVAL);
  EXPECT_EQ(why(mrc_get_qpn(wrong_kind<mrc_qp>(cq_), &qpn)), EINVAL);
  EXPECT_EQ(why(mrc_get_qpn(qps_[0], nullptr)), EINVAL);
  EXPECT_EQ(mrc_destroy_qp(nullptr), EINVAL);
  EXPECT_EQ(mrc_destroy_qp(wrong_kind<mrc_qp>(cq_)), EINVAL);
  ibv_qp_attr attr{};
  mrc_qp_attr mrc{};
  EXPECT_EQ(mrc_query_qp(nullptr, &attr, IBV_QP_STATE, &mrc, 0, nullptr), EINVAL);
  EXPECT_EQ(mrc_query_qp(wrong_kind<mrc_qp>(cq_), &attr, IBV_QP_STATE, &mrc, 0, nullptr), EINVAL);
  EXPECT_EQ(mrc_query_qp(qps_[0], nullptr, IBV_QP_STATE, &mrc, 0, nullptr), EINVAL);
  EXPECT_EQ(mrc_query_qp(qps_[0], &attr, 1 << 30, &mrc, 0, nullptr), EINVAL);
  EXPECT_EQ(mrc_query_qp(qps_[0], &attr, 0, nullptr, MRC_QP_MPR, nullptr), EINVAL);
  EXPECT_EQ(mrc_query_qp(qps_[0], &attr, 0, &mrc, 1 << 20, nullptr), EINVAL);
  EXPECT_EQ(mrc_query_qp(qps_[0], nullptr, 0, nullptr, 0, nullptr), 0);
}

TEST_F(ArgumentsTest, ModifyQp) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  mrc_qp_attr mrc{};
  EXPECT_EQ(mrc_modify_qp(nullptr, &attr, IBV_QP_STATE, &mrc, 0), EINVAL);
  EXPECT_EQ(mrc_modify_qp(wrong_kind<mrc_qp>(cq_), &attr, IBV_QP_STATE, &mrc, 0), EINVAL);
  EXPECT_EQ(mrc_modify_qp(qps_[0], nullptr, IBV_QP_STATE, &mrc, 0), EINVAL);
  EXPECT_EQ(mrc_modify_qp(qps_[0], &attr, IBV_QP_STATE | 1 << 30, &mrc, 0), EINVAL);
  EXPECT_EQ(mrc_modify_qp(qps_[0], &attr, IBV_QP_STATE, nullptr, MRC_QP_MPR), EINVAL);
  EXPECT_EQ(mrc_modify_qp(qps_[0], &attr, IBV_QP_STATE, &mrc, 1 << 20), EINVAL);
  EXPECT_EQ(mrc_modify_qp(qps_[0], &attr, IBV_QP_STATE | IBV_QP_QKEY, &mrc, 0), EINVAL);
  EXPECT_EQ(mrc_modify_qp(qps_[0], &attr, IBV_QP_STATE | IBV_QP_CAP, &mrc, 0), EINVAL);
  mrc.qp_hint = wrong_kind<mrc_qp_hint>(cq_);
  EXPECT_EQ(mrc_modify_qp(qps_[0], &attr, IBV_QP_STATE, &mrc, MRC_QP_HINT), EINVAL);
  mrc.profile.ev_profile_id = 0x1234;
  EXPECT_NE(mrc_modify_qp(qps_[0], &attr, IBV_QP_STATE, &mrc, MRC_QP_EV_PROFILE_ID), 0)
      << "no such profile";
  mrc.profile.cc_profile_id = 0x1234;
  EXPECT_NE(mrc_modify_qp(qps_[0], &attr, IBV_QP_STATE, &mrc, MRC_QP_CC_PROFILE_ID), 0);
  EXPECT_EQ(state_of(qps_[0]), IBV_QPS_RESET);
}

TEST_F(ArgumentsTest, Posting) {
  connect();
  ibv_sge sge = buffer(0, 8);
  ibv_send_wr send = write_request(&sge, 4096);
  ibv_send_wr* bad_send = nullptr;
  EXPECT_EQ(mrc_post_send(nullptr, &send, &bad_send), EINVAL);
  EXPECT_EQ(mrc_post_send(wrong_kind<mrc_qp>(cq_), &send, &bad_send), EINVAL);
  EXPECT_EQ(mrc_post_send(qps_[0], nullptr, &bad_send), EINVAL);
  EXPECT_EQ(mrc_post_send(qps_[0], &send, nullptr), EINVAL);
  ibv_recv_wr receive{};
  ibv_recv_wr* bad_receive = nullptr;
  EXPECT_EQ(why(mrc_post_recv(nullptr, &receive, &bad_receive)), EINVAL);
  EXPECT_EQ(why(mrc_post_recv(wrong_kind<mrc_qp>(cq_), &receive, &bad_receive)), EINVAL);
  EXPECT_EQ(why(mrc_post_recv(qps_[0], nullptr, &bad_receive)), EINVAL);
  EXPECT_EQ(why(mrc_post_recv(qps_[0], &receive, nullptr)), EINVAL);
  receive.num_sge = -1;
  EXPECT_EQ(why(mrc_post_recv(qps_[0], &receive, &bad_receive)), EINVAL);
  EXPECT_EQ(bad_receive, &receive);

  const auto refused = [&](const std::function<void(ibv_send_wr&)>& spoil) {
    ibv_send_wr spoiled = write_request(&sge, 4096);
    spoil(spoiled);
    ibv_send_wr* bad = nullptr;
    const int error = mrc_post_send(qps_[0], &spoiled, &bad);
    EXPECT_EQ(bad, error == 0 ? nullptr : &spoiled);
    return error;
  };
  for (const ibv_wr_opcode opcode :
       {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
        IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_LOCAL_INV, IBV_WR_BIND_MW, IBV_WR_SEND_WITH_INV})
    EXPECT_EQ(refused([&](auto& r) { r.opcode = opcode; }), EOPNOTSUPP) << opcode;
  EXPECT_EQ(refused([](auto& r) { r.opcode = static_cast<ibv_wr_opcode>(99); }), EOPNOTSUPP);
  EXPECT_EQ(refused([](auto& r) { r.num_sge = -1; }), EINVAL);
  EXPECT_EQ(refused([](auto& r) { r.num_sge = 100; }), EINVAL);
  EXPECT_EQ(refused([](auto& r) { r.sg_list = nullptr; }), EINVAL);
  EXPECT_EQ(refused([](auto& r) { r.send_flags = 1U << 20; }), EINVAL);
  sge.lkey ^= 0x1000;
  EXPECT_EQ(refused([](auto&) {}), EINVAL) << "a key of nothing";
  sge = buffer(kMemory - 4, 8);
  EXPECT_EQ(refused([](auto&) {}), EINVAL) << "beyond the region";
  sge = buffer(0, 513);
  EXPECT_EQ(refused([](auto& r) { r.send_flags |= IBV_SEND_INLINE; }), EINVAL) << "too much inline";
  ibv_wc wc{};
  EXPECT_EQ(mrc_poll_cq(cq_, 1, &wc), 0) << "nothing was posted";
}

TEST_F(ArgumentsTest, AsyncEvents) {
  mrc_async_event event{};
  EXPECT_EQ(mrc_get_async_event(nullptr, &event), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(mrc_get_async_event(wrong_kind<mrc_context>(cq_), &event), -1);
  EXPECT_EQ(mrc_get_async_event(context_, nullptr), -1);
  mrc_ack_async_event(nullptr);
  event.event_type = IBV_EVENT_QP_FATAL;
  mrc_ack_async_event(&event);
  event.event_type = IBV_EVENT_CQ_ERR;
  mrc_ack_async_event(&event);
}

}  // namespace
}  // namespace mrc::api_test
