// Ids, places and expiry of probes that wait for an answer.
#include "core/probe_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace mrc::core {
namespace {

constexpr DurationNs kPatience = 100;
constexpr std::uint16_t kLimit = 0x8000;

std::uint16_t add(ProbeTable& table, TimeNs now, unsigned ev) {
  return table.add(now, EvIndex{static_cast<std::uint16_t>(ev)}, kPatience, kLimit);
}

TEST(ProbeTable, NumbersProbesFromZeroAndWraps) {
  ProbeTable table;
  EXPECT_EQ(add(table, 0, 1), 0);
  EXPECT_EQ(add(table, 1, 1), 1);
  for (unsigned i = 2; i < kLimit; ++i)
    add(table, 1, 1);
  EXPECT_EQ(add(table, 1, 1), 0) << "the top bit is not ours";
}

TEST(ProbeTable, FindsWhatWaitsOnly) {
  ProbeTable table;
  const std::uint16_t id = add(table, 5, 3);
  const std::optional<ProbeTable::Probe> probe = table.find(id);
  ASSERT_TRUE(probe.has_value());
  EXPECT_EQ(probe->ev, EvIndex{3});
  EXPECT_EQ(probe->sent_at, 5);
  EXPECT_FALSE(table.find(static_cast<std::uint16_t>(id + 1)).has_value());
  table.on_answered(id);
  EXPECT_FALSE(table.find(id).has_value());
  EXPECT_TRUE(table.empty());
}

TEST(ProbeTable, LateAnswersDoubleThePatienceAndThoseInTimeHalveIt) {
  ProbeTable table;
  for (unsigned i = 0; i < 20; ++i)
    add(table, i, i);
  EXPECT_FALSE(table.find(3).has_value());
  EXPECT_TRUE(table.on_unexpected(3));
  EXPECT_FALSE(table.on_unexpected(3)) << "a copy";
  EXPECT_FALSE(table.on_unexpected(500)) << "never asked";
  EXPECT_EQ(table.lateness(), 1U);
  for (std::uint16_t id = 4; id < 12; ++id)
    EXPECT_TRUE(table.on_unexpected(id));
  EXPECT_EQ(table.lateness(), 6U);
  table.on_answered(19);
  EXPECT_EQ(table.lateness(), 5U);
  EXPECT_FALSE(table.on_unexpected(19)) << "a copy of an answer in time";
}

TEST(ProbeTable, LatenessDoublesPatienceAndRepeatedQuestionsButNotTheFirst) {
  ProbeTable table;
  for (unsigned i = 0; i < 20; ++i)
    add(table, i, i);
  EXPECT_TRUE(table.on_unexpected(3));
  EXPECT_TRUE(table.on_unexpected(4));
  EXPECT_EQ(table.before_answer(0), 2U);
  EXPECT_EQ(table.before_question(0), 0U);
  EXPECT_EQ(table.before_question(1), 3U);
}

TEST(ProbeTable, ANinthTakesThePlaceOfTheOldest) {
  ProbeTable table;
  for (unsigned i = 0; i < 9; ++i)
    add(table, i, i);
  EXPECT_FALSE(table.find(0).has_value());
  for (std::uint16_t id = 1; id < 9; ++id)
    EXPECT_TRUE(table.find(id).has_value()) << id;
}

// An answer for each of 200 probes that are under way, 2 us apart, 400 us after its probe.
TEST(ProbeTable, OfManyRefusalsTheOneIsBelievedThatWasAskedForAfterTheFirst) {
  ProbeTable table;
  constexpr DurationNs kAge = 400 * kMicrosecondNs;
  TimeNs now = kSecondNs;
  while (!table.believes_refusal(now, kAge))
    ASSERT_LE(now += 2 * kMicrosecondNs, kSecondNs + kAge);
  EXPECT_EQ(now, kSecondNs + kAge);
}

TEST(ProbeTable, AsksTheJudgeAgainWhenItSays) {
  ProbeTable table;
  EXPECT_EQ(table.deadline(), kNever);
  add(table, 0, 1);
  add(table, 50, 2);
  EXPECT_EQ(table.deadline(), kPatience);
  std::vector<EvIndex> gone;
  const auto judge_at = [&](TimeNs now) {
    table.expire(now, [&](const ProbeTable::Probe& probe) -> TimeNs {
      if (probe.sent_at + kPatience > now) return probe.sent_at + kPatience;
      gone.push_back(probe.ev);
      return now;
    });
  };
  judge_at(99);
  EXPECT_TRUE(gone.empty()) << "too early for any question";
  judge_at(100);
  EXPECT_EQ(gone, std::vector{EvIndex{1}});
  EXPECT_EQ(table.deadline(), 150);
  judge_at(150);
  EXPECT_EQ(gone.size(), 2U);
  EXPECT_EQ(table.deadline(), kNever);
  EXPECT_TRUE(table.empty());
}

}  // namespace
}  // namespace mrc::core
