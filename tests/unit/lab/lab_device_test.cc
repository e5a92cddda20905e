// Two software NICs of this process on a lab's cables: real frames through the switches, verified
// data, and cables that are cut while they carry it.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "lab/daemon.h"
#include "lab_frames.h"
#include "nic/device.h"
#include "node/config.h"
#include "support/running_lab.h"
#include "support/temporary_directory.h"

namespace mrc::lab::test {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);
constexpr std::size_t kMessage = 256 << 10;

class OwnLab {
 public:
  explicit OwnLab(const fabric::TopologySpec& spec) : lab_(base_.path(), spec) {}

  void must(const std::vector<std::string>& words) {
    const Reply reply = client_.ask(words);
    EXPECT_TRUE(reply.ok) << reply.text;
  }
  std::string status() { return client_.ask({"status"}).text; }
  node::DeviceConfig config(unsigned host) {
    node::ConfigResult result =
        node::parse_config(host_text(host), lab_.directory().config_path(host));
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(result.devices.size(), 1U);
    result.devices[0].name = "lab" + std::to_string(host);
    return result.devices[0];
  }

 private:
  std::string host_text(unsigned host) {
    std::ifstream file(lab_.directory().config_path(host));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  mrc::test::TemporaryDirectory base_;
  mrc::test::RunningLab lab_;
  ControlClient client_ = lab_.call();
};

struct Side {
  std::shared_ptr<nic::Device> device;
  std::unique_ptr<nic::CompletionQueue> cq;
  std::unique_ptr<nic::QueuePair> qp;
  std::vector<std::byte> memory = std::vector<std::byte>(kMessage);
  nic::MemoryKeys keys;

  void open(OwnLab& lab, unsigned host) {
    std::string error;
    device = nic::Device::open(lab.config(host), error);
    ASSERT_NE(device, nullptr) << error;
    nic::QpSetup setup;
    setup.domain = device->new_domain();
    ASSERT_EQ(device->register_memory(setup.domain, memory.data(), memory.size(), address(), true,
                                      true, keys),
              0);
    ASSERT_EQ(device->create_completion_queue(64, this, nullptr, cq), 0);
    setup.send_cq = setup.receive_cq = cq.get();
    ASSERT_EQ(device->create_queue_pair(setup, qp), 0);
    ASSERT_EQ(qp->to_init({}), 0);
  }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(memory.data()); }
  void connect(const Side& peer) {
    nic::QpPeer to{.gid = peer.device->gid(), .settings = {}};
    to.settings.remote_qp = peer.qp->number();
    ASSERT_EQ(qp->to_rtr(to), 0);
    core::QpReadyToSend rts;
    rts.timeout = 16;
    rts.linear_retries = 7;
    ASSERT_EQ(qp->to_rts(rts), 0);
  }
};

class LabDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    a.open(lab, 1);
    b.open(lab, 6);
    a.connect(b);
    b.connect(a);
  }

  void fill(unsigned round) {
    for (std::size_t i = 0; i < kMessage; ++i)
      a.memory[i] = static_cast<std::byte>((i * 7 + i / 256 + round) & 0xFF);
  }
  void post() {
    const nic::Buffer buffer{a.memory.data(), static_cast<std::uint32_t>(kMessage), a.keys.local};
    const nic::SendWork work{.id = 1,
                             .buffers = {&buffer, 1},
                             .remote_address = b.address(),
                             .remote_key = b.keys.remote};
    std::size_t posted = 0;
    ASSERT_EQ(a.qp->post_sends({&work, 1}, posted), 0);
  }
  void finish() {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    nic::WorkCompletion done;
    while (a.cq->poll({&done, 1}) == 0) {
      ASSERT_LT(std::chrono::steady_clock::now(), end)
          << lab.status() << a.qp->report().explanation;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    ASSERT_EQ(done.status, core::CompletionStatus::kSuccess) << a.qp->report().explanation;
    EXPECT_EQ(a.memory, b.memory);
  }
  void transfer(unsigned round) {
    fill(round);
    post();
    if (!HasFatalFailure()) finish();
  }
  void wait_for_port(bool up) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (a.device->port_active(PortId{1}) != up) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  OwnLab lab{small_fabric()};
  Side a;
  Side b;
};

TEST_F(LabDevice, CarriesDataOverAllPlanes) {
  for (unsigned round = 0; round < 4; ++round)
    transfer(round);
  for (const nic::PortReport& port : a.device->report().ports)
    EXPECT_GT(port.counters.packets_sent, 0U);
}

TEST_F(LabDevice, ACableIsCutInMidTransfer) {
  transfer(0);
  fill(1);
  post();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  lab.must({"fault", "t0:0/t1:1/plane:0 down @0"});
  finish();
  transfer(2);
  lab.must({"heal", "t0:0/t1:1/plane:0"});
  transfer(3);
}

TEST_F(LabDevice, AllPathsOfAPlaneButOneAreGoneAndComeBack) {
  transfer(0);
  for (const char* t1 : {"t1:0", "t1:1", "t1:2"})
    lab.must({"fault", std::string(t1) + "/plane:* down @0"});
  transfer(1);
  lab.must({"heal", "all"});
  transfer(2);
}

TEST_F(LabDevice, OnePathOfAllIsLeft) {
  transfer(0);
  for (const char* t1 : {"t1:0/plane:*", "t1:1/plane:*", "t1:2/plane:*", "t1:3/plane:1"})
    lab.must({"fault", std::string(t1) + " down @0"});
  for (unsigned round = 1; round < 6; ++round)
    transfer(round);
  lab.must({"heal", "all"});
  transfer(6);
}

TEST_F(LabDevice, AWholePlaneGoesAndTheNicSeesItsPortGoAndComeBack) {
  transfer(0);
  lab.must({"fault", "t0:*/plane:0 down @0"});
  wait_for_port(false);
  transfer(1);
  EXPECT_NE(lab.status().find("port\t1\t0\tdown\t0"), std::string::npos) << lab.status();
  lab.must({"heal", "all"});
  wait_for_port(true);
  transfer(2);
}

TEST_F(LabDevice, ASwitchReboots) {
  transfer(0);
  fill(1);
  post();
  lab.must({"fault", "t1:2/plane:1 down @1ms for 50ms"});
  finish();
  transfer(2);
}

TEST_F(LabDevice, LossDamageAndFlapsCostTimeAndNothingElse) {
  lab.must({"fault", "t0:0/t1:0/plane:0 loss 5% @0"});
  lab.must({"fault", "t0:1/t1:1/plane:1 corrupt 5% @0"});
  lab.must({"fault", "t0:0/t1:2/plane:0 flap 5ms/20ms @0"});
  lab.must({"fault", "t0:1/t1:3/plane:1 rate 20% @0"});
  lab.must({"fault", "t0:0/plane:1 blackhole t1:0 @0"});
  for (unsigned round = 0; round < 4; ++round)
    transfer(round);
}

TEST_F(LabDevice, RefusesWhatItDoesNotKnow) {
  ControlClient client;
  EXPECT_FALSE(client.connect("/nonexistent"));
  EXPECT_NE(lab.status().find("fabric\t2\t8\t2\t4"), std::string::npos);
}

}  // namespace
}  // namespace mrc::lab::test
