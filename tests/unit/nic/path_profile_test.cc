// From a controller's profile to the paths of queue pairs: an EV is its value and its port.
#include "nic/path_profile.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "unit/nic/device_loop.h"

namespace mrc::nic {
namespace {

using node::NodeEvProfile;
using node::NodeSnapshot;
using node::ProfileEv;

using test::LoopBackend;
using test::LoopNet;

constexpr std::uint64_t kId = 5;
constexpr unsigned kPorts = 4;

wire::IpAddress address() { return wire::parse_address("fd00::1").value(); }

ProfileEv ev_of(std::uint32_t value, unsigned port) {
  ProfileEv ev{.port = static_cast<PortId>(port), .populated = true};
  ev.value = wire::structured_ev(value);
  ev.compact = ev.value;
  return ev;
}

class PathProfileTest : public testing::Test {
 protected:
  PathProfileResult build(const std::vector<ProfileEv>& evs) {
    NodeSnapshot snapshot;
    snapshot.formats[1] = {.state = node::ProfileState::kOnline,
                           .kind = wire::EvKind::kStructured,
                           .field_widths = {32}};
    NodeEvProfile profile;
    profile.state = node::ProfileState::kOnline;
    profile.mode = node::EvMode::kExplicit;
    profile.format_id = 1;
    profile.evs = evs;
    snapshot.ev_profiles[kId] = profile;
    return profiles_.of_node(snapshot, kId);
  }

  LoopBackend backend_{std::make_shared<LoopNet>(), address(), kPorts};
  os::KernelRandom random_;
  PathProfiles profiles_{backend_, {}, random_};
};

TEST_F(PathProfileTest, OneValueOnFourPortsIsFourPaths) {
  const PathProfileResult built = build({ev_of(7, 1), ev_of(7, 2), ev_of(7, 3), ev_of(7, 4)});
  ASSERT_EQ(built.error, 0);
  EXPECT_EQ(built.profile->profile.size(), 4U);
  EXPECT_EQ(built.profile->profile.ports(), PortMask::first(4));
  EXPECT_TRUE(built.profile->unusable.empty());
}

TEST_F(PathProfileTest, ValuesThatDifferInTheHighHalfAndCopiesAreAllThere) {
  const PathProfileResult built =
      build({ev_of(0x1'0007, 1), ev_of(0x2'0007, 1), ev_of(0x2'0007, 1), ev_of(7, 1)});
  ASSERT_EQ(built.error, 0);
  EXPECT_EQ(built.profile->profile.size(), 4U);
  EXPECT_EQ(built.profile->evs.size(), 4U);
}

TEST_F(PathProfileTest, EvsOnPortsThatAreNotThereAreCountedAndTheOthersUsed) {
  const PathProfileResult built = build({ev_of(1, 1), ev_of(2, 5), ev_of(3, 16), ev_of(4, 2)});
  ASSERT_EQ(built.error, 0);
  EXPECT_EQ(built.profile->profile.size(), 2U);
  ASSERT_EQ(built.profile->unusable.size(), 2U);
  EXPECT_EQ(built.profile->unusable[0], ev_of(2, 5));
}

TEST_F(PathProfileTest, AProfileWithoutAUsablePathIsRefused) {
  EXPECT_EQ(build({ev_of(1, 5), ev_of(2, 6)}).error, EINVAL);
}

TEST_F(PathProfileTest, PathsOfTheDevicesOwnChoiceDiffer) {
  const PathProfileResult own = profiles_.own();
  ASSERT_EQ(own.error, 0);
  std::set<std::uint32_t> low;
  for (unsigned i = 0; i < own.profile->profile.size(); ++i)
    low.insert(own.profile->profile.entry(EvIndex{static_cast<std::uint16_t>(i)}).entropy & 0xFFFF);
  EXPECT_EQ(low.size(), 8U * kPorts);
}

}  // namespace
}  // namespace mrc::nic
