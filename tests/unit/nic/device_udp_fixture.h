// Two devices of one process over the UDP back end, on loopback addresses of their own.
#pragma once

#include <string>

#include "backend_fixture.h"
#include "device_fixture.h"

namespace mrc::nic::test {

class UdpDevicesTest : public ::testing::Test {
 protected:
  // 0: as many engines as the device finds right.
  explicit UdpDevicesTest(unsigned threads = 0) : threads_(threads) {}
  void SetUp() override {
    open(a, 1);
    open(b, 2);
  }
  void open(Side& side, unsigned host) {
    node::DeviceConfig config = private_device(4, host);
    config.name = "udp" + std::to_string(host);
    config.directory = scratch / config.name;
    config.threads = threads_;
    config.payload_check = payload_check;
    config.dialect = dialect;
    std::string error;
    side.device = Device::open(config, error);
    ASSERT_NE(side.device, nullptr) << error;
  }

  node::PayloadCheck payload_check = node::PayloadCheck::kFull;
  wire::Dialect dialect;
  TemporaryDirectory scratch;
  Side a;
  Side b;

 private:
  unsigned threads_;
};

}  // namespace mrc::nic::test
