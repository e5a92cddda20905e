// What the UDP back end does when the kernel refuses to take something. The kernel's part is played
// here: these stand before the functions of libc in this program. So does operator new, which
// counts what a thread allocates; sanitizers have their own, with them nothing is counted.
#include "nic/io/udp/udp_transmit.h"

#include <gtest/gtest.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "backend_fixture.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MRC_OTHER_ALLOCATOR
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MRC_OTHER_ALLOCATOR
#endif

namespace {

thread_local std::uint64_t allocations = 0;

std::atomic<unsigned> calls_without_room = 0;  // so many calls find no room
std::atomic<bool> no_segmentation = false;     // messages of several segments are refused

bool is_segmented(const msghdr& message) {
  if (message.msg_control == nullptr) return false;
  // Not written; the macros know no constant messages.
  auto* const header = const_cast<msghdr*>(&message);  // NOLINT
  for (cmsghdr* part = CMSG_FIRSTHDR(header); part != nullptr; part = CMSG_NXTHDR(header, part))
    if (part->cmsg_level == SOL_UDP && part->cmsg_type == UDP_SEGMENT) return true;
  return false;
}

// The error of a call that is refused; 0: it goes to the kernel.
int refusal(const msghdr& first) {
  unsigned left = calls_without_room.load();
  while (left > 0 && !calls_without_room.compare_exchange_weak(left, left - 1)) {
  }
  if (left > 0) return EAGAIN;
  return no_segmentation.load() && is_segmented(first) ? EIO : 0;
}

}  // namespace

#ifndef MRC_OTHER_ALLOCATOR
void* operator new(std::size_t size) {
  ++allocations;
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

extern "C" {

ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  errno = refusal(*message);
  return errno != 0 ? -1 : syscall(SYS_sendmsg, socket, message, flags);
}

int sendmmsg(int socket, mmsghdr* messages, unsigned count, int flags) {
  errno = refusal(messages[0].msg_hdr);
  return errno != 0 ? -1 : static_cast<int>(syscall(SYS_sendmmsg, socket, messages, count, flags));
}

}  // extern "C"

namespace mrc::nic::test {
namespace {

class UdpTransmit : public testing::Test {
 protected:
  UdpTransmit() {
    // Flows and sockets are made when they are first used.
    send(0, 1);
    EXPECT_TRUE(collect(*b_, got_, 1));
  }
  ~UdpTransmit() override {
    calls_without_room = 0;
    no_segmentation = false;
  }
  UdpTransmit(const UdpTransmit&) = delete;
  UdpTransmit& operator=(const UdpTransmit&) = delete;

  // Packets `first` to `first + count - 1`; how often that allocated.
  std::uint64_t send(std::uint32_t first, std::uint32_t count) {
    const Route route = route_to(*b_, two_.planes[0].address, 1, 0xC300);
    const std::uint64_t before = allocations;
    for (std::uint32_t i = first; i < first + count; ++i)
      send_bytes(*a_, route, write_packet(i, kBytes), bytes_);
    a_->flush();
    return allocations - before;
  }
  // All that were sent so far, in order.
  void expect_in_order(std::size_t count) {
    ASSERT_TRUE(collect(*b_, got_, count)) << got_.total();
    for (std::uint32_t i = 0; i < count; ++i) {
      wire::Packet packet;
      std::span<const std::byte> payload;
      const auto& transport = got_.arrived[i].transport;
      ASSERT_EQ(wire::parse_transport(transport, packet, payload), DropReason::kNone);
      ASSERT_EQ(packet.bth.psn, Psn(i));
      ASSERT_TRUE(std::ranges::equal(payload, bytes_));
    }
  }

  static constexpr std::size_t kBytes = 1024;
  const std::vector<std::byte> bytes_ = pattern(kBytes);
  const node::DeviceConfig one_ = private_device(1, 1);
  const node::DeviceConfig two_ = private_device(1, 2);
  const std::unique_ptr<Backend> a_ = must_open(one_);
  const std::unique_ptr<Backend> b_ = must_open(two_);
  Collector got_;
};

TEST_F(UdpTransmit, WhatFindsNoRoomIsKeptAndSentInOrderWithoutAllocating) {
  for (std::uint32_t round = 0; round < 3; ++round) {
    calls_without_room = 2;
    EXPECT_EQ(send(1 + round * 40, 40), 0U);
    EXPECT_FALSE(a_->free_ports().contains(PortId{1}));
    const std::uint64_t before = allocations;
    for (unsigned tries = 0; tries < 100 && !a_->free_ports().contains(PortId{1}); ++tries)
      a_->on_wake();
    EXPECT_TRUE(a_->free_ports().contains(PortId{1}));
    // A look at the links allocates, once a second.
    EXPECT_LE(allocations - before, 64U);
    ASSERT_NO_FATAL_FAILURE(expect_in_order(1 + (round + 1) * 40));
  }
  EXPECT_EQ(a_->counters().send_refused, 0U);
}

TEST_F(UdpTransmit, MoreThanCanBeKeptIsCountedAndForgotten) {
  calls_without_room = ~0U;
  const std::uint32_t many = 4'000;
  EXPECT_EQ(send(1, many), 0U);
  const std::uint64_t refused = a_->counters().send_refused;
  EXPECT_GT(refused, 0U);
  EXPECT_LT(refused, many);
  calls_without_room = 0;
  a_->on_wake();
  ASSERT_NO_FATAL_FAILURE(expect_in_order(1 + many - refused));
}

TEST_F(UdpTransmit, WhereTheKernelCannotSegmentEachPacketGoesAloneWithoutAllocating) {
  if (a_->burst_limit() == 1) GTEST_SKIP() << "no segmentation here";
  no_segmentation = true;
  EXPECT_EQ(send(1, 20), 0U);
  ASSERT_NO_FATAL_FAILURE(expect_in_order(21));
}

}  // namespace
}  // namespace mrc::nic::test
