// What requests to other nodes and capabilities of the peer put on the wire, as the contract has it
// and as a plain socket sees it: code point, path, ports (api_contract.md, 5 and 6.6).
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "os/descriptor.h"
#include "unit/api/api_fixture.h"
#include "unit/api/ctl_fixture.h"
#include "wire/codec.h"

namespace mrc::api {
namespace {

constexpr unsigned kPlanes = 4;  // of a device that nobody configured

struct Seen {
  unsigned port = 0;  // it came in through
  unsigned source_port = 0;
  unsigned dscp = 64;  // none
  wire::Packet packet;
};

// Somebody who only listens: host `host` of loopback, 127.0.<port - 1>.<host> on each of the
// planes.
class Listener {
 public:
  Listener(unsigned host, std::uint16_t udp_port) {
    for (std::uint32_t plane = 0; plane < kPlanes; ++plane)
      listen_at(0x7F00'0000U | plane << 8 | host, udp_port);
  }

  // Waits for a packet.
  Seen next() {
    std::array<std::byte, 9'000> bytes{};
    alignas(cmsghdr) std::array<char, 64> control{};
    sockaddr_in from{};
    iovec piece{.iov_base = bytes.data(), .iov_len = bytes.size()};
    msghdr message{};
    message.msg_name = &from;
    message.msg_namelen = sizeof from;
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    Seen seen;
    if (::poll(waits_.data(), waits_.size(), 60'000) < 1) return seen;
    const auto ready = std::ranges::find_if(waits_, [](const pollfd& w) { return w.revents != 0; });
    const ssize_t got = ::recvmsg(ready->fd, &message, 0);
    seen.port = static_cast<unsigned>(ready - waits_.begin()) + 1;
    if (got <= static_cast<ssize_t>(wire::kIcrcLength)) return seen;
    seen.source_port = ntohs(from.sin_port);
    const cmsghdr* const part = CMSG_FIRSTHDR(&message);
    if (part != nullptr && part->cmsg_type == IP_TOS) seen.dscp = *CMSG_DATA(part) >> 2;
    std::span<const std::byte> data;
    const auto transport = std::span(bytes).first(static_cast<std::size_t>(got));
    EXPECT_EQ(wire::parse_transport(transport.first(transport.size() - wire::kIcrcLength),
                                    seen.packet, data),
              DropReason::kNone);
    return seen;
  }

 private:
  void listen_at(std::uint32_t address, std::uint16_t udp_port) {
    const int socket = sockets_.emplace_back(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)).get();
    waits_.push_back({.fd = socket, .events = POLLIN, .revents = 0});
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(udp_port);
    at.sin_addr.s_addr = htonl(address);
    const void* const untyped = &at;
    EXPECT_EQ(::bind(socket, static_cast<const sockaddr*>(untyped), sizeof at), 0);
    const int on = 1;
    EXPECT_EQ(::setsockopt(socket, IPPROTO_IP, IP_RECVTOS, &on, sizeof on), 0);
  }

  std::vector<os::Descriptor> sockets_;
  std::vector<pollfd> waits_;
};

class RequestsOnTheWire : public test::CtlTest {
 protected:
  Seen send(mrc_ctl_ep_op_type op, std::uint8_t dscp, std::uint32_t ev, std::uint8_t port,
            std::uint32_t port_status = 0) {
    Listener peer(77, context_.device->config().udp_port);
    mrc_ctl_ep_req request{};
    request.req_id = 9;
    request.sgid = request.dgid = gid_of(context_.device->gid());
    request.dgid.raw[15] = 77;
    request.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_STEV;
    request.req_ev = test::stev(ev, port);
    request.op.port_status_update.port_status = port_status;
    mrc_ctl_ep_rsp answer{};
    int count = 0;
    EXPECT_EQ(
        why(mrc_ctl_ep_batch_send_wait(ctx(), dscp, op, &request, 1, 1'000'000, &answer, &count)),
        ETIMEDOUT);
    return peer.next();
  }
};

TEST_F(RequestsOnTheWire, AProbeCarriesItsCodePointOnItsPath) {
  for (const std::uint8_t dscp : {0, 26, 46, 63}) {
    const Seen probe = send(MRC_CTL_EP_OP_EV_PROBE, dscp, 0xD123U + dscp, 3);
    EXPECT_EQ(probe.dscp, dscp);
    EXPECT_EQ(probe.port, 3U);
    EXPECT_EQ(probe.source_port, 0xD123U + dscp);
    ASSERT_TRUE(std::holds_alternative<wire::EndpointRequest>(probe.packet.body));
    EXPECT_EQ(std::get<wire::EndpointRequest>(probe.packet.body).op, wire::EndpointOp::kEvProbe);
  }
}

TEST_F(RequestsOnTheWire, APortStatusGoesByTheEvThatItNames) {
  for (std::uint8_t port = 1; port <= 4; ++port) {
    const std::uint32_t ev = 0xD200U + port;
    const Seen status = send(MRC_CTL_EP_OP_PORT_STATUS_UPDATE, 34, ev, port, 1U << port | 1U << 4);
    EXPECT_EQ(status.source_port, ev);
    EXPECT_EQ(status.dscp, 34U);
    EXPECT_EQ(status.port, port);
    ASSERT_TRUE(std::holds_alternative<wire::EndpointRequest>(status.packet.body));
    const auto& body = std::get<wire::EndpointRequest>(status.packet.body);
    EXPECT_EQ(body.op, wire::EndpointOp::kPortStatusUpdate);
    // Bit N is port N for the program; on the wire port 1 is bit 0 (docs/wire.md).
    EXPECT_EQ(body.port_status, (1U << port | 1U << 4) >> 1);
  }
}

class CapabilitiesOnTheWire : public api_test::MrcTest {
 protected:
  // Switches that trim are named by a profile (docs/controller.md).
  void name_trimming_switches() {
    mrc_ctl_cc_profile_attr attr{};
    attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
    attr.algorithm = nullptr;
    attr.vendor_cfg[0] = 1;
    ASSERT_EQ(
        why(mrc_ctl_modify_cc_profile(context_, kProfile, &attr,
                                      MRC_CTL_CC_PROFILE_STATE | MRC_CTL_CC_PROFILE_ALGORITHM |
                                          MRC_CTL_CC_PROFILE_VENDOR_CFG)),
        0);
    attr.profile_state = MRC_CTL_PROFILE_ONLINE;
    ASSERT_EQ(why(mrc_ctl_modify_cc_profile(context_, kProfile, &attr, MRC_CTL_CC_PROFILE_STATE)),
              0);
  }
  void end_profile() {
    for (const auto state : {MRC_CTL_PROFILE_OFFLINE, MRC_CTL_PROFILE_INIT}) {
      mrc_ctl_cc_profile_attr attr{};
      attr.profile_state = state;
      EXPECT_EQ(why(mrc_ctl_modify_cc_profile(context_, kProfile, &attr, MRC_CTL_CC_PROFILE_STATE)),
                0);
    }
  }
  // The code point of a write to somebody who only listens.
  unsigned code_point(mrc_qp* qp, std::uint32_t cap, unsigned host) {
    ibv_qp_attr verbs{};
    verbs.qp_state = IBV_QPS_INIT;
    mrc_qp_attr own{};
    own.profile.cc_profile_id = kProfile;
    EXPECT_EQ(mrc_modify_qp(qp, &verbs, IBV_QP_STATE, &own, MRC_QP_CC_PROFILE_ID), 0);
    verbs.qp_state = IBV_QPS_RTR;
    verbs.dest_qp_num = 0x123;
    verbs.ah_attr.is_global = 1;
    EXPECT_EQ(ibv_query_gid(verbs_, 1, 0, &verbs.ah_attr.grh.dgid), 0);
    verbs.ah_attr.grh.dgid.raw[15] = static_cast<std::uint8_t>(host);
    own.cap = cap;
    EXPECT_EQ(
        mrc_modify_qp(qp, &verbs, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN, &own, MRC_QP_CAP), 0);
    verbs.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(mrc_modify_qp(qp, &verbs, IBV_QP_STATE, &own, 0), 0);
    const auto udp_port = static_cast<std::uint16_t>(std::stoi(getenv("MRC_PORT")));
    Listener peer(host, udp_port);
    ibv_sge piece{.addr = reinterpret_cast<std::uintptr_t>(memory_.data()),
                  .length = 1 << 16,
                  .lkey = mr_->lkey};
    ibv_send_wr work{};
    work.sg_list = &piece;
    work.num_sge = 1;
    work.opcode = IBV_WR_RDMA_WRITE;
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(mrc_post_send(qp, &work, &bad), 0);
    const Seen seen = peer.next();
    EXPECT_TRUE(wire::is_write(seen.packet.bth.opcode));
    verbs.qp_state = IBV_QPS_RESET;
    EXPECT_EQ(mrc_modify_qp(qp, &verbs, IBV_QP_STATE, nullptr, 0), 0);
    return seen.dscp;
  }
  static constexpr std::uint64_t kProfile = 31;
};

TEST_F(CapabilitiesOnTheWire, APeerThatAnswersNoTrimmedPacketsIsSentNone) {
  ASSERT_NO_FATAL_FAILURE(name_trimming_switches());
  const unsigned trimmable = code_point(qps_[0], 0, 81);
  const unsigned not_trimmable = code_point(qps_[1], MRC_QP_CAP_TRIM_NACK_DEST_UNSUPPORTED, 82);
  const wire::DscpMap points;
  EXPECT_EQ(trimmable, points.trimmable);
  EXPECT_EQ(not_trimmable, points.no_trim);
  end_profile();
}

}  // namespace
}  // namespace mrc::api
