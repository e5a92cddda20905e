#include "fabric/export_queues.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mrc::fabric {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<PortQueues> two_ports(bool trims) {
  return {{"swp1", make_queue_policy({}, 1'000'000, trims, /*faces_host=*/true)},
          {"swp2", make_queue_policy({}, 1'000'000, trims, /*faces_host=*/false)}};
}

TEST(ExportQueues, LinuxServesControlFirstAndMarksWhereNoHostIs) {
  const std::string text = tc_script("t0:0/plane:0", two_ports(false), {});
  EXPECT_THAT(text, testing::StartsWith("#!/bin/sh\n# t0:0/plane:0: "));
  for (const char* point : {"0xb8", "0x30", "0x40"})
    EXPECT_THAT(text, HasSubstr(std::string("match ip6 priority ") + point + " 0xfc flowid 1:1\n"));
  EXPECT_THAT(text, HasSubstr("first swp1 2000000\n"
                              "tc qdisc add dev swp1 parent 1:2 handle 12: bfifo limit 5000000\n"));
  EXPECT_THAT(text, HasSubstr("dev swp2 parent 1:2 handle 12: red limit 5000000 min 200000 "
                              "max 800000 avpkt 4300 burst "));
}

TEST(ExportQueues, RedOfAShortQueueIsStillOneThatTcTakes) {
  const std::vector<PortQueues> ports = {{"p", make_queue_policy({}, 1'000, false, false)}};
  EXPECT_THAT(tc_script("t1:0/plane:0", ports, {}),
              HasSubstr("red limit 34400 min 4300 max 8600 avpkt 4300 burst 2 "));
}

TEST(ExportQueues, SonicTrimsIntoTheControlQueueAndMarksTheLastHop) {
  const std::string text = sonic_queue_tables(two_ports(true), {});
  EXPECT_THAT(text, HasSubstr("\"4\": \"3\""));   // trimmable
  EXPECT_THAT(text, HasSubstr("\"46\": \"6\""));  // control
  EXPECT_THAT(text, HasSubstr("\"0\": \"0\""));
  EXPECT_THAT(text, HasSubstr("\"MRC_TRIMMED\": {\"5\": \"12\"}"));
  EXPECT_THAT(text, HasSubstr("\"MRC_TRIMMED_LAST_HOP\": {\"5\": \"16\"}"));
  EXPECT_THAT(text, HasSubstr("\"green_min_threshold\": \"200000\", \"green_max_threshold\": "
                              "\"800000\""));
  EXPECT_THAT(text, HasSubstr("\"swp1|3\": {\"scheduler\": \"MRC_DATA\"}"));
  EXPECT_THAT(text, HasSubstr("\"swp2|3\": {\"scheduler\": \"MRC_DATA\", \"wred_profile\": "
                              "\"MRC_DATA\"}"));
  EXPECT_THAT(text, HasSubstr("\"swp2|6\": {\"scheduler\": \"MRC_CONTROL\"}"));
  EXPECT_THAT(text, HasSubstr("\"dscp_value\": \"from-tc\", \"tc_value\": \"5\""));
}

TEST(ExportQueues, WithoutTrimmingNothingOfItIsSaid) {
  const std::string text = sonic_queue_tables(two_ports(false), {});
  EXPECT_THAT(text, Not(HasSubstr("TRIM")));
  EXPECT_THAT(text, Not(HasSubstr("trim")));
  EXPECT_THAT(text, HasSubstr("\"4\": \"0\""));
  EXPECT_THAT(text, Not(HasSubstr("swp1|3")));
}

}  // namespace
}  // namespace mrc::fabric
