#include "controller/peer_probe.h"

#include <gtest/gtest.h>

#include <cstring>

#include "controller/words.h"
#include "fabric/input_error.h"

namespace mrc::controller {
namespace {

constexpr unsigned kPorts = 4;

std::vector<mrc_ctl_ep_req> requests(const PeerProbe& probe, unsigned round = 0) {
  return requests_of(probe, parse_gid("10.0.0.1"), kPorts, round);
}

TEST(PeerProbe, OneByEachPort) {
  const auto all = requests({.peer = "10.0.0.2"});
  ASSERT_EQ(all.size(), kPorts);
  for (unsigned i = 0; i < kPorts; ++i) {
    EXPECT_EQ(all[i].req_ev.port, i + 1);
    EXPECT_EQ(all[i].sgid.raw[15], 1);
    EXPECT_EQ(all[i].dgid.raw[15], 2);
    EXPECT_EQ(all[i].ev_fmt_mode, MRC_CTL_EV_FMT_MODE_STEV);
  }
}

TEST(PeerProbe, OnePortAlone) {
  const auto one = requests({.peer = "10.0.0.2", .port = 3});
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].req_ev.port, 3);
}

TEST(PeerProbe, RoundsTakeDifferentPaths) {
  const auto first = requests({.peer = "10.0.0.2"}, 0);
  const auto second = requests({.peer = "10.0.0.2"}, 1);
  for (unsigned i = 0; i < kPorts; ++i)
    EXPECT_NE(std::memcmp(first[i].req_ev.val, second[i].req_ev.val, sizeof first[i].req_ev.val),
              0);
}

TEST(PeerProbe, AGivenPathIsTakenAsItIsWritten) {
  const auto stev = requests({.peer = "10.0.0.2", .ev = "2:0001c350"});
  ASSERT_EQ(stev.size(), 1U);
  EXPECT_EQ(stev[0].ev_fmt_mode, MRC_CTL_EV_FMT_MODE_STEV);
  EXPECT_EQ(ev_text(stev[0].req_ev, false), "2:0001c350");
  const auto srv6 = requests({.peer = "10.0.0.2", .ev = "2:fc00:1::"});
  EXPECT_EQ(srv6[0].ev_fmt_mode, MRC_CTL_EV_FMT_MODE_SRV6);
}

TEST(PeerProbe, BadWords) {
  EXPECT_THROW(requests({.peer = "nobody"}), fabric::InputError);
  EXPECT_THROW(requests({.peer = "10.0.0.2", .ev = "path"}), fabric::InputError);
}

}  // namespace
}  // namespace mrc::controller
