// Memory that comes and goes, sends that land in receives, and the order of bytes in memory.
#include <sys/mman.h>

#include <cerrno>

#include "device_fixture.h"

namespace mrc::nic::test {
namespace {

class DeviceMemory : public LoopTest {};

// Registered memory in a mapping of its own, for programs that unmap it too early.
class Mapping {
 public:
  Mapping(Side& side, std::size_t size) : side_(side), size_(size) {
    void* const at =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(at, MAP_FAILED);
    data_ = static_cast<std::byte*>(at);
    EXPECT_EQ(side.device->register_memory(side.domain, data_, size, address(), true, true, keys_),
              0);
  }
  ~Mapping() {
    EXPECT_EQ(side_.device->deregister_memory(keys_), 0);
    cut_to(0);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  void cut_to(std::size_t size) {
    EXPECT_EQ(::munmap(data_ + size, size_ - size), 0);
    size_ = size;
  }
  std::byte* data() { return data_; }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(data_); }
  Buffer buffer(std::size_t offset, std::size_t length) const {
    return {data_ + offset, static_cast<std::uint32_t>(length), keys_.local};
  }
  SendWork write_from(const Buffer& buffer, std::size_t to_offset, std::uint64_t id) const {
    return {.id = id,
            .buffers = {&buffer, 1},
            .remote_address = address() + to_offset,
            .remote_key = keys_.remote};
  }

 private:
  Side& side_;
  std::size_t size_;
  std::byte* data_ = nullptr;
  MemoryKeys keys_;
};

TEST_F(DeviceMemory, RefusesRegionsThatCannotBe) {
  MemoryKeys keys;
  std::array<std::byte, 8> bytes{};
  EXPECT_EQ(a.device->register_memory(1, bytes.data(), ~std::size_t{0}, 0, true, true, keys),
            EINVAL);
  EXPECT_EQ(a.device->register_memory(1, bytes.data(), 8, ~std::uint64_t{3}, true, true, keys),
            EINVAL);
  EXPECT_EQ(a.device->register_memory(1, bytes.data(), 8, 0, false, true, keys), EINVAL);
  EXPECT_EQ(a.device->deregister_memory({}), EINVAL);
  ASSERT_EQ(a.device->register_memory(1, bytes.data(), 8, 0, true, true, keys), 0);
  EXPECT_EQ(a.device->deregister_memory({keys.local, keys.remote + 1}), EINVAL);
  EXPECT_EQ(a.device->deregister_memory(keys), 0);
  EXPECT_EQ(a.device->deregister_memory(keys), EINVAL);
}

TEST_F(DeviceMemory, NothingIsWrittenAfterDeregistration) {
  make_pair();
  Arena from(*a.device, a.domain, 256 << 10);
  Arena to(*b.device, b.domain, 256 << 10);
  from.fill(1);
  for (std::uint64_t i = 0; i < 64; ++i)
    ASSERT_EQ(a.post(write(from, to, from.size(), i)), 0);
  EXPECT_TRUE(eventually([&] { return b.device->report().backend.packets_received > 100; }));
  to.deregister();
  // From here on the memory is ours alone.
  to.clear();
  WorkCompletion last;
  do {
    last = a.next_completion();
  } while (last.status == core::CompletionStatus::kSuccess && last.id != 63);
  EXPECT_TRUE(to.untouched(0, to.size()));
}

TEST_F(DeviceMemory, NothingIsReadAfterDeregistration) {
  make_pair();
  auto from = std::make_unique<Arena>(*a.device, a.domain, 8 << 20);
  Arena to(*b.device, b.domain, 8 << 20);
  for (std::uint64_t i = 0; i < 8; ++i)
    ASSERT_EQ(a.post(write(*from, to, from->size(), i)), 0);
  from.reset();
  WorkCompletion last;
  do {
    last = a.next_completion();
  } while (last.status == core::CompletionStatus::kSuccess && last.id != 7);
  EXPECT_NE(last.status, core::CompletionStatus::kSuccess);
  EXPECT_TRUE(eventually([&] { return a.qp->state() == core::QpState::kError; }));
  EXPECT_NE(a.qp->report().explanation.find("deregistered"), std::string::npos);
}

TEST_F(DeviceMemory, SendsLandInTheBuffersOfReceives) {
  make_pair({.max_receive_buffers = 3, .allow_sends = true});
  Arena from(*a.device, a.domain, 64 << 10);
  Arena to(*b.device, b.domain, 64 << 10);
  from.fill(4);
  for (std::uint64_t i = 0; i < 4; ++i) {
    const std::size_t base = i * 12'000;
    const std::array<Buffer, 3> buffers = {to.buffer(base, 100), to.buffer(base + 200, 7),
                                           to.buffer(base + 1000, 11'000)};
    std::size_t posted = 0;
    const ReceiveWork work{.id = i, .buffers = buffers};
    ASSERT_EQ(b.qp->post_receives({&work, 1}, posted), 0);
  }
  for (std::uint32_t i = 0; i < 4; ++i) {
    const Buffer buffer = from.buffer(0, 9000);
    ASSERT_EQ(a.post({.id = i,
                      .kind = i % 2 == 0 ? SendKind::kSend : SendKind::kSendImmediate,
                      .buffers = {&buffer, 1},
                      .immediate = 1000 + i}),
              0);
  }
  for (std::uint32_t i = 0; i < 4; ++i) {
    const WorkCompletion got = b.next_completion();
    EXPECT_EQ(got.status, core::CompletionStatus::kSuccess);
    EXPECT_EQ(got.id, i);
    EXPECT_EQ(got.length, 9000U);
    EXPECT_EQ(got.kind, i % 2 == 0 ? SendKind::kSend : SendKind::kSendImmediate);
    EXPECT_EQ(got.has_immediate, i % 2 == 1);
    if (got.has_immediate) {
      EXPECT_EQ(got.immediate, 1000 + i);
    }
    const std::size_t base = i * 12'000;
    EXPECT_EQ(to.first_wrong(base, base + 100, 4), base + 100);
    EXPECT_EQ(to.first_wrong(base + 200, base + 207, 4, 100), base + 207);
    EXPECT_EQ(to.first_wrong(base + 1000, base + 9893, 4, 107), base + 9893);
    EXPECT_TRUE(to.untouched(base + 100, base + 200));
    EXPECT_TRUE(to.untouched(base + 9893, base + 12'000));
    EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
  }
}

// Everything but the first packet of a write arrives; its last byte must not show.
TEST_F(DeviceMemory, TheLastByteOfAWriteAppearsLast) {
  make_pair({.last_byte_last = true});
  Arena from(*a.device, a.domain, 16 << 10);
  Arena to(*b.device, b.domain, 16 << 10);
  from.fill(5);
  std::atomic<bool> lose{true};
  LoopNet::FilterScope filter(*net, [&](const wire::Packet& packet, PortId, std::uint32_t) {
    return lose && packet.bth.opcode == wire::Opcode::kWriteFirst;
  });
  ASSERT_EQ(a.post(write(from, to, from.size())), 0);
  const std::size_t last = to.size() - 1;
  std::atomic_ref<std::byte> before_last(to.data()[last - 1]);
  std::atomic_ref<std::byte> at_last(to.data()[last]);
  EXPECT_TRUE(eventually([&] { return before_last.load() == Arena::pattern(last - 1, 5); }));
  EXPECT_NE(at_last.load(), Arena::pattern(last, 5));
  lose = false;
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
  EXPECT_EQ(to.first_wrong(0, to.size(), 5), to.size());
}

TEST_F(DeviceMemory, AHeldByteGoesWithItsRegion) {
  make_pair({.last_byte_last = true});
  Arena from(*a.device, a.domain, 16 << 10);
  Arena to(*b.device, b.domain, 16 << 10);
  from.fill(6);
  std::atomic<bool> lose{true};
  LoopNet::FilterScope filter(*net, [&](const wire::Packet& packet, PortId, std::uint32_t) {
    return lose && packet.bth.opcode == wire::Opcode::kWriteFirst;
  });
  ASSERT_EQ(a.post(write(from, to, from.size())), 0);
  std::atomic_ref<std::byte> before_last(to.data()[to.size() - 2]);
  EXPECT_TRUE(eventually([&] { return before_last.load() == Arena::pattern(to.size() - 2, 6); }));
  to.deregister();
  to.clear();
  lose = false;
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kRemoteAccess);
  EXPECT_TRUE(to.untouched(0, to.size()));
}

// --- Memory that is unmapped while it is registered ---

constexpr std::size_t kKept = 256 << 10;
constexpr std::size_t kCut = 64 << 10;  // too small a gap for anything else to move in

TEST_F(DeviceMemory, AWriteToUnmappedMemoryIsRefused) {
  make_pair();
  // A probe of the reverse path that reaches the sender after its failure is answered with that
  // news, which ends the receiver's queue pair, too. Here it is the refusal alone that counts.
  LoopNet::FilterScope filter(*net, [](const wire::Packet& packet, PortId, std::uint32_t) {
    return packet.bth.opcode == wire::Opcode::kProbe;
  });
  Arena from(*a.device, a.domain, 64 << 10);
  Mapping to(b, kKept + kCut);
  from.fill(7);
  to.cut_to(kKept);
  const Buffer whole = from.buffer(0, from.size());
  // Right before the hole, and into it.
  ASSERT_EQ(a.post(to.write_from(whole, kKept - from.size(), 1)), 0);
  ASSERT_EQ(a.post(to.write_from(whole, kKept - 100, 2)), 0);
  ASSERT_EQ(a.post(to.write_from(whole, 0, 3)), 0);
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kRemoteAccess);
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kFlushed);
  EXPECT_EQ(std::memcmp(to.data() + kKept - from.size(), from.data(), from.size() - 100), 0);
  EXPECT_EQ(b.qp->state(), core::QpState::kReadyToSend);
}

TEST_F(DeviceMemory, AWriteFromUnmappedMemoryIsALocalProtectionError) {
  make_pair();
  Mapping from(a, kKept + kCut);
  Mapping to(b, kKept + kCut);
  from.cut_to(kKept);
  const Buffer good = from.buffer(0, kKept);
  const Buffer bad = from.buffer(kKept - 5000, 10'000);
  ASSERT_EQ(a.post(to.write_from(good, 0, 1)), 0);
  ASSERT_EQ(a.post(to.write_from(bad, 0, 2)), 0);
  ASSERT_EQ(a.post(to.write_from(good, 0, 3)), 0);
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kLocalProtection);
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kFlushed);
  EXPECT_EQ(a.qp->state(), core::QpState::kError);
}

TEST_F(DeviceMemory, AReceiveWithUnmappedMemoryFailsBothEnds) {
  make_pair({.allow_sends = true});
  Arena from(*a.device, a.domain, 64 << 10);
  Mapping to(b, kKept + kCut);
  for (std::uint64_t i = 0; i < 3; ++i) {
    const Buffer into = to.buffer(kKept - 8192 + i * 8192, 8192);
    const ReceiveWork work{.id = i, .buffers = {&into, 1}};
    std::size_t posted = 0;
    ASSERT_EQ(b.qp->post_receives({&work, 1}, posted), 0);
  }
  to.cut_to(kKept);
  const Buffer piece = from.buffer(0, 8192);
  for (std::uint64_t i = 0; i < 2; ++i)
    ASSERT_EQ(a.post({.id = i, .kind = SendKind::kSend, .buffers = {&piece, 1}}), 0);
  EXPECT_EQ(b.next_completion().status, core::CompletionStatus::kSuccess);
  EXPECT_EQ(b.next_completion().status, core::CompletionStatus::kLocalProtection);
  EXPECT_EQ(b.next_completion().status, core::CompletionStatus::kFlushed);
  // The answer to the first send may not have come before the refusal of the second.
  const core::CompletionStatus first = a.next_completion().status;
  const core::CompletionStatus second = a.next_completion().status;
  EXPECT_TRUE(first == core::CompletionStatus::kRemoteOperation ||
              second == core::CompletionStatus::kRemoteOperation);
}

TEST_F(DeviceMemory, AHeldByteGoesWithItsMapping) {
  make_pair({.last_byte_last = true});
  Arena from(*a.device, a.domain, 16 << 10);
  Mapping to(b, kKept + kCut);
  from.fill(8);
  std::atomic<bool> lose{true};
  LoopNet::FilterScope filter(*net, [&](const wire::Packet& packet, PortId, std::uint32_t) {
    return lose && packet.bth.opcode == wire::Opcode::kWriteFirst;
  });
  // Only the last byte lies behind the edge.
  const std::size_t start = kKept + 1 - from.size();
  const Buffer whole = from.buffer(0, from.size());
  ASSERT_EQ(a.post(to.write_from(whole, start, 1)), 0);
  std::atomic_ref<std::byte> before_last(to.data()[kKept - 1]);
  EXPECT_TRUE(eventually([&] { return before_last.load() == Arena::pattern(from.size() - 2, 8); }));
  to.cut_to(kKept);
  // What the engine was told before holds for a while.
  std::this_thread::sleep_for(std::chrono::nanoseconds(2 * MappedMemory::kTrustNs));
  lose = false;
  EXPECT_TRUE(eventually([&] { return b.qp->state() == core::QpState::kError; }));
}

}  // namespace
}  // namespace mrc::nic::test
