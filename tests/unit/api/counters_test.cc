// What a queue pair tells about itself beside the OCP API, and how its structure may grow.
#include "openmrc_counters.h"

#include <array>
#include <cerrno>
#include <cstring>

#include "unit/api/api_fixture.h"

namespace mrc::api_test {
namespace {

class CountersTest : public MrcTest {
 protected:
  static openmrc_qp_counters counters_of(mrc_qp* qp) {
    openmrc_qp_counters counters{};
    counters.size = sizeof counters;
    EXPECT_EQ(openmrc_query_qp_counters(qp, &counters), 0);
    return counters;
  }

  void write(std::uint32_t bytes) {
    ibv_sge from = buffer(0, bytes);
    ibv_send_wr request = write_request(&from, kMemory / 2);
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(mrc_post_send(qps_[0], &request, &bad), 0);
    ASSERT_EQ(next_completion().status, IBV_WC_SUCCESS);
  }
};

std::uint64_t paths_of(const openmrc_qp_counters& counters) {
  return std::uint64_t{counters.paths_good} + counters.paths_skipped + counters.paths_assumed_bad +
         counters.paths_denied;
}

TEST_F(CountersTest, ANewQueuePairHasCountedNothingAndHasNoPaths) {
  const openmrc_qp_counters counters = counters_of(qps_[0]);
  EXPECT_EQ(counters.packets_sent, 0U);
  EXPECT_EQ(counters.messages_completed, 0U);
  EXPECT_EQ(paths_of(counters), 0U);
}

TEST_F(CountersTest, PathsAreThereFromInitOn) {
  ASSERT_EQ(to_init(qps_[0]), 0);
  const openmrc_qp_counters counters = counters_of(qps_[0]);
  EXPECT_GT(counters.paths_good, 0U);
  EXPECT_EQ(paths_of(counters), counters.paths_good);
}

TEST_F(CountersTest, BothEndsCountAWrite) {
  connect();
  constexpr std::uint32_t kBytes = 100'000;
  write(kBytes);
  const openmrc_qp_counters sender = counters_of(qps_[0]);
  EXPECT_EQ(sender.messages_completed, 1U);
  EXPECT_GE(sender.bytes_sent, kBytes);
  EXPECT_GE(sender.packets_sent, kBytes / 4096);
  EXPECT_GE(sender.packets_sent, sender.retransmitted);
  EXPECT_EQ(sender.packets_received, 0U);
  EXPECT_GT(sender.sacks_received, 0U);
  const openmrc_qp_counters receiver = counters_of(qps_[1]);
  EXPECT_EQ(receiver.bytes_received, kBytes);
  EXPECT_EQ(receiver.packets_received, sender.packets_sent - sender.retransmitted);
  EXPECT_EQ(receiver.packets_sent, 0U);
  EXPECT_GE(receiver.sacks_sent, sender.sacks_received);
}

TEST_F(CountersTest, ASenderTellsHowItStands) {
  connect();
  write(100'000);
  const openmrc_qp_counters after = counters_of(qps_[0]);
  EXPECT_GT(after.window_bytes, 0U);
  EXPECT_GT(after.round_trip_ns, 0U);
  EXPECT_EQ(after.window_used_bytes, 0U);
  EXPECT_EQ(after.packets_in_flight + after.packets_to_resend + after.messages_outstanding, 0U);

  ibv_qp_attr stop{};
  stop.qp_state = IBV_QPS_RESET;  // the peer takes nothing from now on, and does not say why
  ASSERT_EQ(mrc_modify_qp(qps_[1], &stop, IBV_QP_STATE, nullptr, 0), 0);
  ibv_sge from = buffer(0, 8);
  ibv_send_wr request = write_request(&from, kMemory / 2);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(mrc_post_send(qps_[0], &request, &bad), 0);
  EXPECT_EQ(counters_of(qps_[0]).messages_outstanding, 1U);
}

// A program of the first release: what came later is not written.
TEST_F(CountersTest, AStructureOfTheFirstVersionIsFilledAndNoMore) {
  connect();
  write(4'096);
  openmrc_qp_counters counters;
  std::memset(&counters, 0x5A, sizeof counters);
  counters.size = offsetof(openmrc_qp_counters, window_bytes);
  ASSERT_EQ(openmrc_query_qp_counters(qps_[0], &counters), 0);
  EXPECT_EQ(counters.size, offsetof(openmrc_qp_counters, window_bytes));
  EXPECT_EQ(counters.messages_completed, 1U);
  EXPECT_EQ(counters.window_bytes, 0x5A5A'5A5A'5A5A'5A5AU);
}

TEST_F(CountersTest, AResetBeginsAnew) {
  connect();
  write(4'096);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(mrc_modify_qp(qps_[0], &attr, IBV_QP_STATE, nullptr, 0), 0);
  EXPECT_EQ(counters_of(qps_[0]).packets_sent, 0U);
}

TEST_F(CountersTest, ArgumentsThatAreNone) {
  openmrc_qp_counters counters{};
  counters.size = sizeof counters;
  EXPECT_EQ(openmrc_query_qp_counters(nullptr, &counters), EINVAL);
  EXPECT_EQ(openmrc_query_qp_counters(not_a_handle<mrc_qp>(), &counters), EINVAL);
  EXPECT_EQ(openmrc_query_qp_counters(wrong_kind<mrc_qp>(cq_), &counters), EINVAL);
  EXPECT_EQ(openmrc_query_qp_counters(qps_[0], nullptr), EINVAL);
}

TEST_F(CountersTest, AStructureShorterThanTheFirstVersionIsRefusedAndLeftAlone) {
  openmrc_qp_counters counters;
  std::memset(&counters, 0x5A, sizeof counters);
  const openmrc_qp_counters before = counters;
  for (const std::uint32_t size : {0U, 8U, 199U}) {
    counters.size = size;
    EXPECT_EQ(openmrc_query_qp_counters(qps_[0], &counters), EINVAL) << size;
    EXPECT_EQ(counters.packets_sent, before.packets_sent);
    EXPECT_EQ(counters.size, size);
  }
}

// A program of a later release: its structure is longer than this library knows.
TEST_F(CountersTest, WhatTheLibraryDoesNotKnowReadsAsZeroAndIsNotPartOfTheSize) {
  struct Later {
    openmrc_qp_counters known;
    std::array<std::uint64_t, 4> more;
    std::uint64_t beyond;
  } later;
  std::memset(&later, 0x5A, sizeof later);
  later.known.size = offsetof(Later, beyond);
  ASSERT_EQ(to_init(qps_[0]), 0);
  ASSERT_EQ(openmrc_query_qp_counters(qps_[0], &later.known), 0);
  EXPECT_EQ(later.known.size, sizeof later.known);
  EXPECT_GT(later.known.paths_good, 0U);
  EXPECT_EQ(later.more, (std::array<std::uint64_t, 4>{}));
  EXPECT_EQ(later.beyond, 0x5A5A'5A5A'5A5A'5A5AU);
}

}  // namespace
}  // namespace mrc::api_test
