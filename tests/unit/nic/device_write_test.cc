// Writes between two devices: data, lists of buffers, inline data, immediates, order.
#include <set>
#include <utility>

#include "device_fixture.h"

namespace mrc::nic::test {
namespace {

class DeviceWrite : public LoopTest {};

TEST_F(DeviceWrite, CarriesBytesToTheirPlaceAndNowhereElse) {
  make_pair();
  Arena from(*a.device, a.domain, 1 << 20);
  Arena to(*b.device, b.domain, 1 << 20);
  from.fill(1);
  for (const std::size_t length : {0UL, 1UL, 3UL, 64UL, 4095UL, 4096UL, 4097UL, 1UL << 20}) {
    to.clear();
    ASSERT_EQ(a.post(write(from, to, length, length)), 0);
    const WorkCompletion done = a.next_completion();
    EXPECT_EQ(done.status, core::CompletionStatus::kSuccess);
    EXPECT_EQ(done.id, length);
    EXPECT_EQ(done.length, length);
    EXPECT_EQ(to.first_wrong(0, length, 1), length);
    EXPECT_TRUE(to.untouched(length, to.size()));
    EXPECT_TRUE(to.guards_intact());
  }
}

TEST_F(DeviceWrite, DeliversImmediatesInOrderAfterTheirData) {
  make_pair();
  Arena from(*a.device, a.domain, 64 << 10);
  Arena to(*b.device, b.domain, 64 << 10);
  from.fill(2);
  for (std::uint64_t i = 0; i < 16; ++i)
    ASSERT_EQ(b.post_receive(100 + i), 0);
  for (std::uint32_t i = 0; i < 16; ++i) {
    SendWork work = write(from, to, 64 << 10, i);
    work.kind = SendKind::kWriteImmediate;
    work.immediate = 7 * i;
    ASSERT_EQ(a.post(work), 0);
  }
  for (std::uint32_t i = 0; i < 16; ++i) {
    const WorkCompletion got = b.next_completion();
    EXPECT_EQ(got.status, core::CompletionStatus::kSuccess);
    EXPECT_TRUE(got.receive);
    EXPECT_TRUE(got.has_immediate);
    EXPECT_EQ(got.id, 100 + i);
    EXPECT_EQ(got.immediate, 7 * i);
    EXPECT_EQ(got.length, 64U << 10);
    EXPECT_EQ(to.first_wrong(0, to.size(), 2), to.size());
  }
  for (std::uint32_t i = 0; i < 16; ++i)
    EXPECT_EQ(a.next_completion().id, i);
}

TEST_F(DeviceWrite, GathersFromSeveralBuffers) {
  make_pair({.max_send_buffers = 5});
  Arena from(*a.device, a.domain, 64 << 10);
  Arena to(*b.device, b.domain, 64 << 10);
  from.fill(3);
  const std::array<Buffer, 5> list = {from.buffer(0, 5), from.buffer(100, 9000), from.buffer(0, 0),
                                      from.buffer(50'000, 1), from.buffer(20'000, 8191)};
  const SendWork work{
      .id = 9, .buffers = list, .remote_address = to.address(), .remote_key = to.keys().remote};
  ASSERT_EQ(a.post(work), 0);
  EXPECT_EQ(a.next_completion().length, 5U + 9000 + 1 + 8191);
  std::size_t at = 0;
  for (const auto& [offset, length] :
       {std::pair<std::size_t, std::size_t>{0, 5}, {100, 9000}, {50'000, 1}, {20'000, 8191}}) {
    EXPECT_EQ(to.first_wrong(at, at + length, 3, offset), at + length);
    at += length;
  }
  EXPECT_TRUE(to.untouched(at, to.size()));
}

TEST_F(DeviceWrite, CopiesInlineDataAtPosting) {
  make_pair({.max_inline = 100});
  Arena to(*b.device, b.domain, 4096);
  std::array<std::byte, 100> text;
  for (std::size_t i = 0; i < text.size(); ++i)
    text[i] = Arena::pattern(i, 4);
  const Buffer buffer{text.data(), 100, 0};
  const SendWork work{.buffers = {&buffer, 1},
                      .inline_data = true,
                      .remote_address = to.address(),
                      .remote_key = to.keys().remote};
  ASSERT_EQ(a.post(work), 0);
  text.fill(std::byte{0});
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
  EXPECT_EQ(to.first_wrong(0, 100, 4), 100U);
}

TEST_F(DeviceWrite, SurvivesLoss) {
  make_pair();
  Arena from(*a.device, a.domain, 1 << 20);
  Arena to(*b.device, b.domain, 1 << 20);
  from.fill(5);
  std::atomic<unsigned> count{0};
  LoopNet::FilterScope filter(
      *net, [&](const wire::Packet&, PortId, std::uint32_t) { return ++count % 17 == 0; });
  ASSERT_EQ(a.post(write(from, to, 1 << 20)), 0);
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
  EXPECT_EQ(to.first_wrong(0, to.size(), 5), to.size());
}

TEST_F(DeviceWrite, ReachesMemoryRegisteredUnderAnotherAddress) {
  make_pair();
  Arena from(*a.device, a.domain, 4096);
  Arena to(*b.device, b.domain, 4096);
  from.fill(6);
  MemoryKeys keys;
  ASSERT_EQ(b.device->register_memory(b.domain, to.data(), 4096, 0x1000, true, true, keys), 0);
  SendWork work = write(from, to, 2000);
  work.remote_address = 0x1000 + 96;
  work.remote_key = keys.remote;
  ASSERT_EQ(a.post(work), 0);
  EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
  EXPECT_EQ(to.first_wrong(96, 2096, 6), 2096U);
  EXPECT_TRUE(to.untouched(0, 96));
  EXPECT_EQ(b.device->deregister_memory(keys), 0);
}

// A program may spin on memory and never call anything.
TEST_F(DeviceWrite, ArrivesWithoutAnyCallOfTheReceiver) {
  make_pair();
  Arena from(*a.device, a.domain, 64);
  Arena to(*b.device, b.domain, 64);
  from.fill(7);
  ASSERT_EQ(a.post(write(from, to, 8)), 0);
  std::atomic_ref<std::byte> flag(to.data()[0]);
  EXPECT_TRUE(eventually([&] { return flag.load() == Arena::pattern(0, 7); }));
}

// Of 8 EVs on each of 4 ports 2 are used at a time. What goes bad is replaced by a backup.
TEST_F(DeviceWrite, BackupsTakeThePlaceOfPathsThatGoBad) {
  for (Side* side : {&a, &b}) {
    side->device.reset();
    node::DeviceConfig config = loop_config(scratch, side == &a ? 0 : 1);
    config.active_evs_per_port = 2;
    std::string error;
    Backends backends;
    backends.push_back(std::make_unique<LoopBackend>(net, config.planes.front().address, 4));
    side->device = DeviceImpl::create(config, std::move(backends), error);
    ASSERT_NE(side->device, nullptr) << error;
  }
  make_pair();
  Arena from(*a.device, a.domain, 1 << 20);
  Arena to(*b.device, b.domain, 1 << 20);
  from.fill(1);
  const auto used = [&] {
    std::set<std::pair<PortId, std::uint32_t>> paths;
    for (const PathReport& path : a.qp->report().paths) {
      if (path.counters.sent > 0) paths.emplace(path.port, path.entropy);
    }
    return paths;
  };
  const auto send = [&] {
    ASSERT_EQ(a.post(write(from, to, 1 << 20)), 0);
    EXPECT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
  };
  send();
  const auto first = used();
  EXPECT_EQ(first.size(), 8U);
  const LoopNet::FilterScope dead(
      *net, [&](const wire::Packet& packet, PortId port, std::uint32_t entropy) {
        return wire::is_write(packet.bth.opcode) && std::pair(port, entropy) == *first.begin();
      });
  for (unsigned i = 0; i < 100 && used().size() < 9; ++i)
    send();
  EXPECT_GE(used().size(), 9U);
}

}  // namespace
}  // namespace mrc::nic::test
