#include "sim/roce_queue_pair.h"

#include <gtest/gtest.h>

namespace mrc::sim {
namespace {

constexpr RoceSegmentation kFour{.path_mtu = 1000, .ack_every = 4};
constexpr std::uint32_t kNearWrap = 0xFFFF'FFFD;

Message message(TaskId task, std::uint64_t bytes, bool notify = false) {
  return {.task = task, .destination = 1, .connection = 0, .bytes = bytes, .notify = notify};
}

RocePacket data(const RoceRequester::Segment& segment) {
  return {.kind = RocePacket::Kind::kData,
          .first = segment.first,
          .last = segment.last,
          .immediate = segment.immediate,
          .ack_request = segment.ack_request,
          .psn = segment.psn,
          .payload_bytes = segment.bytes};
}

TEST(RoceRequester, CutsMessagesIntoPackets) {
  RoceRequester requester;
  requester.post(kFour, message(5, 2'500, true));
  requester.post(kFour, message(6, 1'000));
  std::vector<RoceRequester::Segment> sent;
  while (requester.has_unsent())
    sent.push_back(requester.next_segment(kFour));
  ASSERT_EQ(sent.size(), 4u);
  for (std::uint32_t i = 0; i < 4; ++i)
    EXPECT_EQ(sent[i].psn, i);
  EXPECT_TRUE(sent[0].first && !sent[0].last && !sent[0].ack_request);
  EXPECT_EQ(sent[1].address, task_address(5) + 1'000);
  EXPECT_TRUE(!sent[2].first && sent[2].last && sent[2].immediate && sent[2].ack_request);
  EXPECT_EQ(sent[2].bytes, 500u);
  EXPECT_TRUE(sent[3].first && sent[3].last && !sent[3].immediate);
  EXPECT_EQ(sent[3].address, task_address(6));
}

TEST(RoceRequester, AnEmptyMessageIsOnePacket) {
  RoceRequester requester;
  requester.post(kFour, message(0, 0));
  ASSERT_TRUE(requester.has_unsent());
  const RoceRequester::Segment segment = requester.next_segment(kFour);
  EXPECT_EQ(segment.bytes, 0u);
  EXPECT_TRUE(segment.first && segment.last);
  EXPECT_FALSE(requester.has_unsent());
}

TEST(RoceRequester, AsksForAcksNowAndThen) {
  RoceRequester requester;
  requester.post(kFour, message(0, 10'000));
  std::vector<std::uint32_t> asked;
  EXPECT_FALSE(requester.awaits_ack());
  while (requester.has_unsent()) {
    const RoceRequester::Segment segment = requester.next_segment(kFour);
    if (segment.ack_request) asked.push_back(segment.psn);
    EXPECT_EQ(requester.awaits_ack(), segment.psn >= 3);
  }
  EXPECT_EQ(asked, (std::vector<std::uint32_t>{3, 7, 9}));
}

TEST(RoceRequester, AcksFinishMessagesInOrder) {
  RoceRequester requester(kNearWrap);
  for (TaskId task = 0; task < 3; ++task)
    requester.post(kFour, message(task, 2'000));
  while (requester.has_unsent())
    requester.next_segment(kFour);
  std::vector<TaskId> finished;
  EXPECT_TRUE(requester.acknowledge(kNearWrap + 1, finished));
  EXPECT_TRUE(finished.empty());
  EXPECT_TRUE(requester.acknowledge(kNearWrap + 4, finished));
  EXPECT_EQ(finished, (std::vector<TaskId>{0, 1}));
  EXPECT_FALSE(requester.acknowledge(kNearWrap + 3, finished)) << "old news";
  EXPECT_FALSE(requester.acknowledge(kNearWrap + 7, finished)) << "never sent";
  EXPECT_TRUE(requester.acknowledge(kNearWrap + 6, finished));
  EXPECT_EQ(finished.size(), 3u);
  EXPECT_FALSE(requester.has_unfinished());
}

TEST(RoceRequester, RewindRepeatsEverythingNotAcknowledged) {
  RoceRequester requester;
  requester.post(kFour, message(0, 3'000));
  requester.post(kFour, message(1, 3'000));
  for (int i = 0; i < 5; ++i)
    requester.next_segment(kFour);
  std::vector<TaskId> finished;
  requester.acknowledge(2, finished);
  requester.rewind();
  for (std::uint32_t psn = 2; psn < 6; ++psn) {
    const RoceRequester::Segment segment = requester.next_segment(kFour);
    EXPECT_EQ(segment.psn, psn);
    EXPECT_EQ(segment.retransmission, psn < 5);
    EXPECT_EQ(segment.address, task_address(psn / 3) + psn % 3 * 1'000);
  }
}

TEST(RoceRequester, AnAckDuringRepetitionSkipsWhatHasArrived) {
  RoceRequester requester;
  requester.post(kFour, message(0, 3'000));
  requester.post(kFour, message(1, 3'000));
  for (int i = 0; i < 6; ++i)
    requester.next_segment(kFour);
  requester.rewind();
  requester.next_segment(kFour);
  std::vector<TaskId> finished;
  EXPECT_TRUE(requester.acknowledge(4, finished));
  EXPECT_EQ(finished, (std::vector<TaskId>{0}));
  EXPECT_EQ(requester.next_segment(kFour).psn, 4u);
}

TEST(RoceRequester, GivingUpNamesWhatIsUnfinished) {
  RoceRequester requester;
  for (TaskId task = 0; task < 3; ++task)
    requester.post(kFour, message(task, 1'000));
  requester.next_segment(kFour);
  std::vector<TaskId> tasks;
  requester.acknowledge(1, tasks);
  tasks.clear();
  requester.abandon(tasks);
  EXPECT_EQ(tasks, (std::vector<TaskId>{1, 2}));
  EXPECT_FALSE(requester.has_unsent() || requester.has_unfinished() || requester.awaits_ack());
}

TEST(RoceResponder, PlacesPacketsInOrder) {
  RoceRequester requester(kNearWrap);
  RoceResponder responder(kNearWrap);
  requester.post(kFour, message(7, 5'500));
  while (requester.has_unsent()) {
    const RoceRequester::Segment segment = requester.next_segment(kFour);
    const std::uint64_t reth = segment.first ? segment.address : 0;
    const RoceResponder::RxResult result = responder.on_data(data(segment), reth);
    EXPECT_TRUE(result.accepted);
    EXPECT_EQ(result.address, segment.address);
    EXPECT_EQ(result.ack, segment.ack_request);
  }
  EXPECT_EQ(responder.expected(), kNearWrap + 6);
}

TEST(RoceResponder, ReportsAGapOnce) {
  RoceRequester requester;
  RoceResponder responder;
  requester.post(kFour, message(0, 8'000));
  std::vector<RocePacket> sent;
  while (requester.has_unsent())
    sent.push_back(data(requester.next_segment(kFour)));
  responder.on_data(sent[0], task_address(0));
  EXPECT_TRUE(responder.on_data(sent[2], 0).nak);
  for (int i = 3; i < 8; ++i) {
    const RoceResponder::RxResult result = responder.on_data(sent[i], 0);
    EXPECT_FALSE(result.nak || result.ack || result.accepted);
  }
  EXPECT_EQ(responder.expected(), 1u);
  EXPECT_TRUE(responder.on_data(sent[1], 0).accepted);
  EXPECT_FALSE(responder.gap_reported());
  EXPECT_TRUE(responder.on_data(sent[3], 0).nak) << "another gap";
}

TEST(RoceResponder, AnswersDuplicatesThatAskForIt) {
  RoceRequester requester;
  RoceResponder responder;
  requester.post(kFour, message(0, 4'000));
  std::vector<RocePacket> sent;
  while (requester.has_unsent())
    sent.push_back(data(requester.next_segment(kFour)));
  for (const RocePacket& packet : sent)
    responder.on_data(packet, task_address(0));
  const RoceResponder::RxResult silent = responder.on_data(sent[2], 0);
  EXPECT_TRUE(silent.duplicate && !silent.ack && !silent.accepted);
  EXPECT_TRUE(responder.on_data(sent[3], 0).ack);
  EXPECT_EQ(responder.expected(), 4u);
}

TEST(RoceResponder, SendsOneCnpPerInterval) {
  RoceResponder responder;
  EXPECT_TRUE(responder.on_mark(0, 50));
  EXPECT_FALSE(responder.on_mark(1, 50));
  EXPECT_FALSE(responder.on_mark(49, 50));
  EXPECT_TRUE(responder.on_mark(60, 50));
  EXPECT_FALSE(responder.on_mark(100, 50));
  EXPECT_TRUE(responder.on_mark(110, 50));
}

}  // namespace
}  // namespace mrc::sim
