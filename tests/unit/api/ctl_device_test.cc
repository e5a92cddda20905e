// The device as a controller sees it: attributes, ports, rights, events and requests.
#include <grp.h>
#include <sys/wait.h>

#include <functional>

#include "unit/api/ctl_fixture.h"

namespace mrc::api {
namespace {

using test::stev;
using CtlDevice = test::CtlTest;

TEST(CtlVersion, IsToldWithoutAContext) {
  uint32_t current = 0;
  uint32_t last = 1;
  uint32_t vendor = 0;
  uint32_t last_vendor = 1;
  mrc_ctl_query_version(&current, &last, &vendor, &last_vendor);
  EXPECT_EQ(current, 0x0100'0001u);
  EXPECT_EQ(last, 0u);
  EXPECT_EQ(vendor, 0x0100'0000u);
  EXPECT_EQ(last_vendor, 0u);
  mrc_ctl_query_version(nullptr, nullptr, nullptr, nullptr);
}

TEST_F(CtlDevice, TellsItsLimits) {
  mrc_ctl_device_attr attr{};
  int supported = 0;
  ASSERT_EQ(why(mrc_ctl_query_device_ex(nullptr, ctx(), &attr, &supported)), 0);
  EXPECT_EQ(supported, 1);
  EXPECT_EQ(attr.mrc_ctl_protocol_version, 1u);
  EXPECT_EQ(attr.ev.ev_max_count, 65'536u);
  EXPECT_EQ(attr.ev.ev_free_count, 65'536u);
  EXPECT_EQ(attr.ev.ev_max_count_profile, 1'024u);
  EXPECT_EQ(attr.ev.ev_count_align, 1u);
  EXPECT_EQ(attr.ev.ev_max_width, 256u);
  EXPECT_EQ(attr.ev.ev_fmt_mode_mask, 7u);
  EXPECT_EQ(attr.ev.ev_mode_mask, 7u);
  EXPECT_GE(attr.ev.ev_op_max_entries, 1u);
  EXPECT_EQ(attr.phy_port_mask, 0x1Eu);
  EXPECT_NE(attr.opt_attr & MRC_CTL_OPT_CAP_EP_OP_EV_PROBE, 0u);
  EXPECT_STREQ(attr.cc.algorithms[0], "uet-1.0-nscc");
  EXPECT_EQ(attr.cc.algorithms[1], nullptr);
}

TEST_F(CtlDevice, QueriesRefuseWrongArguments) {
  mrc_ctl_device_attr attr{};
  int supported = 0;
  ibv_context foreign{};
  EXPECT_EQ(why(mrc_ctl_query_device_ex(nullptr, nullptr, &attr, &supported)), EINVAL);
  EXPECT_EQ(why(mrc_ctl_query_device_ex(nullptr, ctx(), nullptr, &supported)), EINVAL);
  EXPECT_EQ(why(mrc_ctl_query_device_ex(nullptr, ctx(), &attr, nullptr)), EINVAL);
  EXPECT_EQ(why(mrc_ctl_query_device_ex(&foreign, ctx(), &attr, &supported)), EINVAL);
  EXPECT_EQ(why(mrc_ctl_query_device(nullptr, &attr)), EINVAL);
  EXPECT_EQ(why(mrc_ctl_query_device(&foreign, nullptr)), EINVAL);
  ibv_device elsewhere{};
  foreign.device = &elsewhere;
  EXPECT_EQ(why(mrc_ctl_query_device(&foreign, &attr)), EOPNOTSUPP);
  supported = 1;
  EXPECT_EQ(why(mrc_ctl_query_device_ex(&foreign, nullptr, &attr, &supported)), 0);
  EXPECT_EQ(supported, 0);
}

TEST_F(CtlDevice, PortsAreDisabledAndEnabled) {
  mrc_ctl_port_attr attr{};
  for (std::uint8_t port = 1; port <= 4; ++port) {
    ASSERT_EQ(why(mrc_ctl_query_port(ctx(), port, &attr, MRC_CTL_PORT_ADMIN_STATE)), 0);
    EXPECT_EQ(attr.port_admin_state, MRC_CTL_PORT_ADMIN_ENABLED);
  }
  attr.port_admin_state = MRC_CTL_PORT_ADMIN_DISABLED;
  ASSERT_EQ(why(mrc_ctl_modify_port(ctx(), 3, &attr, MRC_CTL_PORT_ADMIN_STATE)), 0);
  attr.port_admin_state = MRC_CTL_PORT_ADMIN_ENABLED;
  ASSERT_EQ(why(mrc_ctl_query_port(ctx(), 3, &attr, MRC_CTL_PORT_ADMIN_STATE)), 0);
  EXPECT_EQ(attr.port_admin_state, MRC_CTL_PORT_ADMIN_DISABLED);
  for (int i = 0; i < 1'000 && context_.device->port_active(PortId{3}); ++i)
    usleep(10'000);
  EXPECT_FALSE(context_.device->port_active(PortId{3}));
  attr.port_admin_state = MRC_CTL_PORT_ADMIN_ENABLED;
  ASSERT_EQ(why(mrc_ctl_modify_port(ctx(), 3, &attr, MRC_CTL_PORT_ADMIN_STATE)), 0);
  for (int i = 0; i < 1'000 && !context_.device->port_active(PortId{3}); ++i)
    usleep(10'000);
  EXPECT_TRUE(context_.device->port_active(PortId{3}));
}

TEST_F(CtlDevice, PortCallsRefuseWrongArguments) {
  mrc_ctl_port_attr attr{};
  const int mask = MRC_CTL_PORT_ADMIN_STATE;
  for (const auto call : {mrc_ctl_query_port, mrc_ctl_modify_port}) {
    EXPECT_EQ(why(call(nullptr, 1, &attr, mask)), EINVAL);
    EXPECT_EQ(why(call(ctx(), 0, &attr, mask)), EINVAL);
    EXPECT_EQ(why(call(ctx(), 5, &attr, mask)), EINVAL);
    EXPECT_EQ(why(call(ctx(), 255, &attr, mask)), EINVAL);
    EXPECT_EQ(why(call(ctx(), 1, nullptr, mask)), EINVAL);
    EXPECT_EQ(why(call(ctx(), 1, &attr, 0)), EINVAL);
    EXPECT_EQ(why(call(ctx(), 1, &attr, 3)), EINVAL);
  }
  attr.port_admin_state = static_cast<mrc_ctl_port_admin_state>(2);
  EXPECT_EQ(why(mrc_ctl_modify_port(ctx(), 1, &attr, mask)), EINVAL);
  EXPECT_EQ(version(), 0u);
}

TEST_F(CtlDevice, WithoutTheRightNothingIsChangedAndMuchCanBeRead) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_NO_FATAL_FAILURE(online_format(1, MRC_CTL_EV_FMT_MODE_STEV, {32}));
  const std::uint64_t before = version();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (setgroups(0, nullptr) != 0 || setresgid(12'345, 12'345, 12'345) != 0 ||
        setresuid(12'345, 12'345, 12'345) != 0)
      _exit(1);
    // A device of the parent is closed to its child; the rules of a process of its own are these.
    std::string error;
    const auto own = node::NodeState::open(directory_ / "mrc0", error);
    if (own == nullptr) _exit(2);
    if (own->snapshot()->formats.size() != 1) _exit(3);
    if (own->update([](node::NodeSnapshot& s) { return s.formats.clear(), 0; }) != EPERM) _exit(4);
    _exit(own->listen() == nullptr && errno == EPERM ? 0 : 5);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(version(), before);
}

class CtlEvents : public test::CtlTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(explicit_profile(5, {10, 20, 30, 40}));
    ASSERT_EQ(ev_online(5), 0);
  }
  void send(std::size_t index, core::EvState state) {
    node().send_event(
        {.profile_id = 5, .ev = node().snapshot()->ev_profiles.at(5).evs[index], .state = state});
  }
};

TEST_F(CtlEvents, ArePolledFromAQueueOfTheirOwn) {
  mrc_cq* cq = mrc_ctl_create_ev_event_cq(ctx(), 16, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr) << errno;
  mrc_ctl_ev_event events[4] = {};
  EXPECT_EQ(mrc_ctl_poll_ev_event(cq, 4, events), 0);
  send(1, core::EvState::kAssumedBad);
  send(1, core::EvState::kGood);
  send(2, core::EvState::kAssumedBad);
  EXPECT_EQ(mrc_ctl_poll_ev_event(cq, 2, events), 2);
  EXPECT_EQ(events[0].profile_id, 5u);
  EXPECT_EQ(events[0].ev.val[3], 20);
  EXPECT_EQ(events[0].ev.port, 2);
  EXPECT_EQ(events[0].drop_count, 0u);
  EXPECT_EQ(events[0].state, MRC_CTL_EV_ASSUMED_BAD);
  EXPECT_EQ(events[1].state, MRC_CTL_EV_GOOD);
  EXPECT_EQ(mrc_ctl_poll_ev_event(cq, 4, events), 1);
  EXPECT_EQ(events[0].ev.port, 3);
  EXPECT_EQ(mrc_destroy_cq(cq), 0);
}

TEST_F(CtlEvents, AProgramOfVersionOneZeroGetsTheShorterStructure) {
  context_.api_version = MRC_API_VER(1, 0, 0);
  mrc_cq* cq = mrc_ctl_create_ev_event_cq(ctx(), 16, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr) << errno;
  send(0, core::EvState::kAssumedBad);
  send(1, core::EvState::kAssumedBad);
  std::uint64_t words[14] = {};
  EXPECT_EQ(mrc_ctl_poll_ev_event(cq, 2, reinterpret_cast<mrc_ctl_ev_event*>(words)), 2);
  EXPECT_EQ(words[0], 5u);
  EXPECT_EQ(words[6], 5u);
  EXPECT_EQ(words[12], 0u);
  EXPECT_EQ(mrc_destroy_cq(cq), 0);
}

TEST_F(CtlEvents, WrongArgumentsAreRefused) {
  mrc_ctl_ev_event event{};
  EXPECT_EQ(mrc_ctl_create_ev_event_cq(nullptr, 16, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(mrc_ctl_create_ev_event_cq(ctx(), 0, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(mrc_ctl_create_ev_event_cq(ctx(), 16, nullptr, nullptr, 1), nullptr);
  EXPECT_EQ(mrc_ctl_create_ev_event_cq(ctx(), 16, nullptr, nullptr, -1), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_LT(mrc_ctl_poll_ev_event(nullptr, 1, &event), 0);
  mrc_cq* cq = mrc_ctl_create_ev_event_cq(ctx(), 16, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  EXPECT_LT(mrc_ctl_poll_ev_event(cq, -1, &event), 0);
  EXPECT_LT(mrc_ctl_poll_ev_event(cq, 1, nullptr), 0);
  EXPECT_EQ(mrc_ctl_poll_ev_event(cq, 0, nullptr), 0);
  EXPECT_EQ(mrc_destroy_cq(cq), 0);
  mrc_cq work;
  EXPECT_LT(mrc_ctl_poll_ev_event(&work, 1, &event), 0);
}

class CtlRequests : public test::CtlTest {
 protected:
  mrc_ctl_ep_req probe(std::uint16_t id, std::uint8_t port) {
    mrc_ctl_ep_req request{};
    request.req_id = id;
    request.sgid = gid_of(context_.device->gid());
    request.dgid = request.sgid;
    request.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_STEV;
    request.req_ev = stev(0x1'0000u + 50'000 + id, port);
    return request;
  }
  int send(std::vector<mrc_ctl_ep_req> requests, mrc_ctl_ep_op_type op, std::uint32_t timeout_ns) {
    answers_.assign(requests.size(), {});
    count_ = 1;  // as good as any: it is never read
    return why(mrc_ctl_ep_batch_send_wait(ctx(), 0, op, requests.data(),
                                          static_cast<int>(requests.size()), timeout_ns,
                                          answers_.data(), &count_));
  }
  std::vector<mrc_ctl_ep_rsp> answers_;
  int count_ = 0;
};

TEST_F(CtlRequests, AProbeOfEveryPortIsAnswered) {
  ASSERT_EQ(send({probe(1, 1), probe(2, 2), probe(3, 3), probe(4, 4)}, MRC_CTL_EP_OP_EV_PROBE,
                 4'000'000'000),
            0);
  ASSERT_EQ(count_, 4);
  unsigned ids = 0;
  for (const mrc_ctl_ep_rsp& answer : answers_) {
    ids |= 1U << answer.req_id;
    EXPECT_EQ(answer.port, answer.req_id);
    EXPECT_GT(answer.rtt, 0u);
  }
  EXPECT_EQ(ids, 0b1'1110u);
}

TEST_F(CtlRequests, APeerThatIsNotThereTimesOutAndOthersAreReturned) {
  mrc_ctl_ep_req nobody = probe(2, 2);
  nobody.dgid.raw[15] = 77;
  EXPECT_EQ(send({probe(1, 1), nobody}, MRC_CTL_EP_OP_EV_PROBE, 300'000'000), ETIMEDOUT);
  ASSERT_EQ(count_, 1);
  EXPECT_EQ(answers_[0].req_id, 1);
}

TEST_F(CtlRequests, WrongArgumentsAreRefused) {
  mrc_ctl_ep_req request = probe(1, 1);
  mrc_ctl_ep_rsp answer{};
  int count = 1;
  const auto call = [&](mrc_context* context, mrc_ctl_ep_op_type op, mrc_ctl_ep_req* requests,
                        int number, mrc_ctl_ep_rsp* answers, int* answer_count) {
    return why(
        mrc_ctl_ep_batch_send_wait(context, 0, op, requests, number, 1'000, answers, answer_count));
  };
  const auto op = MRC_CTL_EP_OP_EV_PROBE;
  EXPECT_EQ(call(nullptr, op, &request, 1, &answer, &count), EINVAL);
  EXPECT_EQ(call(ctx(), static_cast<mrc_ctl_ep_op_type>(2), &request, 1, &answer, &count), EINVAL);
  EXPECT_EQ(call(ctx(), op, nullptr, 1, &answer, &count), EINVAL);
  EXPECT_EQ(call(ctx(), op, &request, 0, &answer, &count), EINVAL);
  EXPECT_EQ(call(ctx(), op, &request, -1, &answer, &count), EINVAL);
  EXPECT_EQ(call(ctx(), op, &request, 1, nullptr, &count), EINVAL);
  EXPECT_EQ(call(ctx(), op, &request, 1, &answer, nullptr), EINVAL);
  const auto refused = [&](const std::function<void(mrc_ctl_ep_req&)>& spoil) {
    mrc_ctl_ep_req spoilt = probe(1, 1);
    spoil(spoilt);
    EXPECT_EQ(send({spoilt}, op, 1'000), EINVAL);
  };
  refused([](mrc_ctl_ep_req& r) { r.req_ev.port = 0; });
  refused([](mrc_ctl_ep_req& r) { r.req_ev.port = 5; });
  refused([](mrc_ctl_ep_req& r) { r.ev_fmt_mode = static_cast<mrc_ctl_ev_fmt_mode>(0); });
  refused([](mrc_ctl_ep_req& r) { r.dgid = {}; });
  refused([](mrc_ctl_ep_req& r) { r.sgid.raw[15] ^= 0x55; });
  mrc_ctl_ep_req status = probe(1, 1);
  status.op.port_status_update.port_status = 1 << 17;
  EXPECT_EQ(send({status}, MRC_CTL_EP_OP_PORT_STATUS_UPDATE, 1'000), EINVAL);
  status.op.port_status_update.port_status = 1;
  EXPECT_EQ(send({status}, MRC_CTL_EP_OP_PORT_STATUS_UPDATE, 1'000), EINVAL)
      << "there is no port 0";
  EXPECT_EQ(count_, 0);
  EXPECT_EQ(why(mrc_ctl_ep_batch_send_wait(ctx(), 64, op, &request, 1, 1'000, &answer, &count)),
            EINVAL)
      << "a DSCP has six bits";
  EXPECT_EQ(why(mrc_ctl_ep_batch_send_wait(ctx(), 0, op, &request, 65'537, 1'000, &answer, &count)),
            EINVAL);
}

}  // namespace
}  // namespace mrc::api
