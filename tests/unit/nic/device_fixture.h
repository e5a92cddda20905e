// Two devices in one process, joined by the loop back end or by UDP on loopback, and what tests of
// the engine do with them again and again.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "device_loop.h"
#include "nic/device_impl.h"
#include "support/temporary_directory.h"

namespace mrc::nic::test {

inline constexpr auto kPatience = std::chrono::seconds(30);

using mrc::test::TemporaryDirectory;

// Calls `done` until it is true or patience ends.
template <typename Done>
bool eventually(Done done) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

// Memory with guard zones on both sides.
class Arena {
 public:
  Arena(Device& device, std::uint32_t domain, std::size_t size, bool remote_write = true)
      : device_(&device), bytes_(size + 2 * kGuard, kFill), size_(size) {
    EXPECT_EQ(device.register_memory(domain, data(), size, address(), true, remote_write, keys_),
              0);
  }
  ~Arena() { deregister(); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void deregister() {
    if (keys_.local != 0) {
      EXPECT_EQ(device_->deregister_memory(keys_), 0);
    }
    keys_ = {};
  }
  std::byte* data() { return bytes_.data() + kGuard; }
  std::uint64_t address() { return reinterpret_cast<std::uintptr_t>(data()); }
  std::size_t size() const { return size_; }
  const MemoryKeys& keys() const { return keys_; }
  Buffer buffer(std::size_t offset, std::size_t length) {
    return {data() + offset, static_cast<std::uint32_t>(length), keys_.local};
  }

  // A pattern in which every eight bytes say where they belong.
  static std::byte pattern(std::size_t position, unsigned salt) {
    const std::uint64_t word = (position / 8 + 1) * 0x9E37'79B9'7F4A'7C15 + salt;
    return static_cast<std::byte>(word >> (position % 8 * 8));
  }
  void fill(unsigned salt) {
    for (std::size_t i = 0; i < size_; ++i)
      data()[i] = pattern(i, salt);
  }
  void clear() { std::fill(data(), data() + size_, kFill); }
  // The first position in [from, to) that does not hold the pattern shifted by `shift`.
  std::size_t first_wrong(std::size_t from, std::size_t to, unsigned salt, std::size_t shift = 0) {
    for (std::size_t i = from; i < to; ++i)
      if (data()[i] != pattern(i - from + shift, salt)) return i;
    return to;
  }
  bool untouched(std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i)
      if (data()[i] != kFill) return false;
    return true;
  }
  bool guards_intact() const {
    for (std::size_t i = 0; i < kGuard; ++i)
      if (bytes_[i] != kFill || bytes_[bytes_.size() - 1 - i] != kFill) return false;
    return true;
  }

 private:
  static constexpr std::size_t kGuard = 4096;
  static constexpr std::byte kFill{0xA5};
  Device* device_;
  std::vector<std::byte> bytes_;
  std::size_t size_;
  MemoryKeys keys_;
};

// A device with one completion queue, one protection domain and one queue pair.
struct Side {
  std::shared_ptr<Device> device;
  std::uint32_t domain = 0;
  std::unique_ptr<CompletionQueue> cq;
  std::unique_ptr<QueuePair> qp;

  void make_qp(QpSetup setup = {}, unsigned cq_depth = 1024) {
    if (!cq) {
      ASSERT_EQ(device->create_completion_queue(cq_depth, this, nullptr, cq), 0);
    }
    if (domain == 0) domain = device->new_domain();
    setup.domain = domain;
    setup.send_cq = setup.receive_cq = cq.get();
    ASSERT_EQ(device->create_queue_pair(setup, qp), 0);
  }

  // The next completion; status kFlushed and id ~0 when none comes.
  WorkCompletion next_completion() {
    WorkCompletion out{.id = ~std::uint64_t{0}, .status = core::CompletionStatus::kFlushed};
    eventually([&] { return cq->poll({&out, 1}) != 0; });
    return out;
  }
  int post(const SendWork& work) {
    std::size_t posted = 0;
    return qp->post_sends({&work, 1}, posted);
  }
  int post_receive(std::uint64_t id) {
    std::size_t posted = 0;
    const ReceiveWork work{.id = id};
    return qp->post_receives({&work, 1}, posted);
  }
};

inline void connect(Side& a, Side& b, const core::QpReadyToSend& rts = {},
                    const core::QpReadyToReceive& rtr = {}) {
  const auto one = [&](Side& self, Side& peer) {
    if (self.qp->state() == core::QpState::kReset) {
      ASSERT_EQ(self.qp->to_init({}), 0);
    }
    QpPeer to{.gid = peer.device->gid(), .settings = rtr};
    to.settings.remote_qp = peer.qp->number();
    ASSERT_EQ(self.qp->to_rtr(to), 0);
    ASSERT_EQ(self.qp->to_rts(rts), 0);
  };
  one(a, b);
  one(b, a);
}

inline node::DeviceConfig loop_config(const TemporaryDirectory& scratch, unsigned number,
                                      unsigned ports = 4) {
  node::DeviceConfig config;
  config.name = "loop" + std::to_string(number);
  config.directory = scratch / config.name;
  for (unsigned i = 0; i < ports; ++i) {
    node::PlaneConfig plane;
    plane.address = wire::ipv4_address(0x0A00'0000 + (i << 16) + number + 1);
    config.planes.push_back(plane);
  }
  return config;
}

class LoopTest : public ::testing::Test {
 protected:
  void SetUp() override {
    open(a, 0);
    open(b, 1);
  }
  void open(Side& side, unsigned number, unsigned ports = 4, unsigned burst = 1) {
    const node::DeviceConfig config = loop_config(scratch, number, ports);
    std::string error;
    Backends backends;
    backends.push_back(
        std::make_unique<LoopBackend>(net, config.planes.front().address, ports, burst));
    side.device = DeviceImpl::create(config, std::move(backends), error);
    ASSERT_NE(side.device, nullptr) << error;
  }
  void make_pair(const QpSetup& setup = {}) {
    a.make_qp(setup);
    b.make_qp(setup);
    connect(a, b);
  }
  SendWork write(Arena& from, Arena& to, std::size_t length, std::uint64_t id = 1) {
    buffer_ = from.buffer(0, length);
    return {.id = id,
            .buffers = {&buffer_, 1},
            .remote_address = to.address(),
            .remote_key = to.keys().remote};
  }

  TemporaryDirectory scratch;
  std::shared_ptr<LoopNet> net = std::make_shared<LoopNet>();
  Side a;
  Side b;

 private:
  Buffer buffer_;
};

}  // namespace mrc::nic::test
