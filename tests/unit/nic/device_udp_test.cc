// Two devices of one process over the UDP back end, on loopback addresses of their own.
#include "device_udp_fixture.h"

namespace mrc::nic::test {
namespace {

using DeviceUdp = UdpDevicesTest;

constexpr std::size_t kMessage = 1 << 20;
constexpr unsigned kMessages = 32;

void exchange_both_ways(Side& a, Side& b) {
  a.make_qp();
  b.make_qp();
  connect(a, b);
  Arena a_from(*a.device, a.domain, kMessage);
  Arena b_from(*b.device, b.domain, kMessage);
  Arena a_to(*a.device, a.domain, kMessages * kMessage);
  Arena b_to(*b.device, b.domain, kMessages * kMessage);
  a_from.fill(11);
  b_from.fill(12);
  for (unsigned i = 0; i < kMessages; ++i) {
    const Buffer from_a = a_from.buffer(0, kMessage);
    const Buffer from_b = b_from.buffer(0, kMessage);
    ASSERT_EQ(a.post({.id = i,
                      .buffers = {&from_a, 1},
                      .remote_address = b_to.address() + i * kMessage,
                      .remote_key = b_to.keys().remote}),
              0);
    ASSERT_EQ(b.post({.id = i,
                      .buffers = {&from_b, 1},
                      .remote_address = a_to.address() + i * kMessage,
                      .remote_key = a_to.keys().remote}),
              0);
  }
  for (unsigned i = 0; i < kMessages; ++i) {
    const WorkCompletion at_a = a.next_completion();
    const WorkCompletion at_b = b.next_completion();
    ASSERT_EQ(at_a.status, core::CompletionStatus::kSuccess) << a.qp->report().explanation;
    ASSERT_EQ(at_b.status, core::CompletionStatus::kSuccess) << b.qp->report().explanation;
    EXPECT_EQ(at_a.id, i);
    EXPECT_EQ(at_b.id, i);
  }
  for (unsigned i = 0; i < kMessages; ++i) {
    EXPECT_EQ(b_to.first_wrong(i * kMessage, (i + 1) * kMessage, 11), (i + 1) * kMessage);
    EXPECT_EQ(a_to.first_wrong(i * kMessage, (i + 1) * kMessage, 12), (i + 1) * kMessage);
  }
  EXPECT_TRUE(a_to.guards_intact());
  EXPECT_TRUE(b_to.guards_intact());
}

TEST_F(DeviceUdp, BulkTransferInBothDirectionsArrivesWhole) {
  exchange_both_ways(a, b);
  EXPECT_EQ(a.device->report().backend.header_checked, 0U);
}

class DeviceUdpCard : public UdpDevicesTest {
 protected:
  DeviceUdpCard() : UdpDevicesTest(3) { dialect = wire::kCard; }
};

// Three engines a side: three numbers at one UDP port.
TEST_F(DeviceUdpCard, EnginesShareAPortAndBulkArrivesWhole) { exchange_both_ways(a, b); }

class DeviceUdpStrange : public UdpDevicesTest {
 protected:
  DeviceUdpStrange() {
    dialect = wire::parse_dialect(
                  "card,first_msn=65535,first_rqmsn=1,ack_msn=last,ev_order=high_in_port,"
                  "bth_order=migration_first,eeth_op=bits_5_4,port_bit=1")
                  .dialect;
  }
};

TEST_F(DeviceUdpStrange, EndsOfOneDialectUnderstandEachOther) {
  ASSERT_EQ(dialect.ev_order, wire::EvOrder::kHighInPort);
  exchange_both_ways(a, b);
}

class DeviceUdpForeign : public UdpDevicesTest {
 protected:
  void SetUp() override {
    open(a, 1);
    dialect.first_rqmsn = 1;
    open(b, 2);
  }
};

// By its symptoms: the first immediate is not the one that b waits for.
TEST_F(DeviceUdpForeign, AnotherDialectIsNoticedByTheFirstImmediate) {
  a.make_qp();
  b.make_qp();
  connect(a, b);
  Arena to(*b.device, b.domain, 64);
  ASSERT_EQ(b.post_receive(1), 0);
  ASSERT_EQ(a.post({.id = 1,
                    .kind = SendKind::kWriteImmediate,
                    .buffers = {},
                    .remote_address = to.address(),
                    .remote_key = to.keys().remote}),
            0);
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kImmediateLimit);
  EXPECT_NE(a.qp->report().explanation.find("first_rqmsn"), std::string::npos)
      << a.qp->report().explanation;
}

class DeviceUdpHeaders : public UdpDevicesTest {
 protected:
  DeviceUdpHeaders() { payload_check = node::PayloadCheck::kHeaders; }
};

// 8,192 packets each way. Until the peer's first answer they are covered in full: a window at most.
TEST_F(DeviceUdpHeaders, EndsThatWantItLeavePayloadsOutOfTheCheck) {
  exchange_both_ways(a, b);
  EXPECT_GT(a.device->report().backend.header_checked, 4'000U);
  EXPECT_GT(b.device->report().backend.header_checked, 4'000U);
}

class DeviceUdpMixed : public UdpDevicesTest {
 protected:
  void SetUp() override {
    payload_check = node::PayloadCheck::kHeaders;
    open(a, 1);
    payload_check = node::PayloadCheck::kFull;
    open(b, 2);
  }
};

TEST_F(DeviceUdpMixed, OneEndAloneChangesNothing) {
  exchange_both_ways(a, b);
  EXPECT_EQ(a.device->report().backend.header_checked, 0U);
  EXPECT_EQ(b.device->report().backend.header_checked, 0U);
}

TEST_F(DeviceUdp, TheSameConfigurationIsTheSameDevice) {
  std::string error;
  EXPECT_EQ(Device::open(a.device->config(), error), a.device);
  EXPECT_NE(a.device, b.device);
}

}  // namespace
}  // namespace mrc::nic::test
