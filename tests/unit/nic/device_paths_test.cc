// What a device over UDP holds for its paths while a controller replaces them: as many sockets
// after many replacements as after the first, and paths that are what was asked for.
#include <filesystem>
#include <string>

#include "device_udp_fixture.h"

namespace mrc::nic::test {
namespace {

constexpr std::uint64_t kProfile = 7;
constexpr unsigned kPaths = 32;
constexpr unsigned kRounds = 60;  // 1,920 source ports; a usual limit leaves room for 256 sockets

std::size_t open_sockets() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string what = std::filesystem::read_symlink(entry.path(), gone);
    if (what.starts_with("socket:")) ++count;
  }
  return count;
}

class DevicePaths : public UdpDevicesTest {
 protected:
  DevicePaths() : UdpDevicesTest(1) {}

  static node::ProfileEv ev_of(unsigned i, std::uint32_t value) {
    node::ProfileEv ev{.port = static_cast<PortId>(i % 4 + 1), .populated = true};
    ev.value = wire::structured_ev(value);
    ev.compact = ev.value;
    return ev;
  }
  void set_evs(node::EvMode mode, std::uint32_t first, unsigned count = kPaths) {
    ASSERT_EQ(a.device->node().update([&](node::NodeSnapshot& s) {
      s.formats[1] = {.state = node::ProfileState::kOnline,
                      .kind = wire::EvKind::kStructured,
                      .field_widths = {32}};
      node::NodeEvProfile& profile = s.ev_profiles[kProfile];
      profile.state = node::ProfileState::kOnline;
      profile.mode = mode;
      profile.format_id = 1;
      profile.min_active = 1;
      profile.evs.resize(kPaths);
      for (unsigned i = 0; i < count; ++i)
        profile.evs[i] = ev_of(i, first + i);
      return 0;
    }),
              0);
  }
  void connect_over_profile() {
    a.make_qp();
    b.make_qp();
    ASSERT_EQ(a.qp->to_init({.ev_profile = kProfile, .has_ev_profile = true}), 0);
    connect(a, b);
  }
  std::uint32_t path(unsigned i) { return a.qp->report().paths[i].entropy; }
  void transfer() {
    Arena from(*a.device, a.domain, 1 << 20);
    Arena to(*b.device, b.domain, 1 << 20);
    from.fill(3);
    const Buffer piece = from.buffer(0, from.size());
    ASSERT_EQ(a.post({.id = 1,
                      .buffers = {&piece, 1},
                      .remote_address = to.address(),
                      .remote_key = to.keys().remote}),
              0);
    ASSERT_EQ(a.next_completion().status, core::CompletionStatus::kSuccess);
    EXPECT_EQ(to.first_wrong(0, to.size(), 3), to.size());
  }
};

TEST_F(DevicePaths, SocketsOfReplacedPathsAreClosed) {
  constexpr std::uint32_t kFirst = 0x8000;
  set_evs(node::EvMode::kExplicit, kFirst);
  connect_over_profile();
  const std::size_t before = open_sockets();
  for (unsigned round = 1; round <= kRounds; ++round) {
    const std::uint32_t first = kFirst + round * kPaths;
    set_evs(node::EvMode::kExplicit, first);
    for (unsigned i = 0; i < kPaths; ++i)
      ASSERT_TRUE(eventually([&] { return path(i) == first + i; })) << round << ' ' << i;
    if (round % 20 == 0) transfer();
  }
  EXPECT_TRUE(eventually([&] { return open_sockets() == before; })) << open_sockets();
  a.qp.reset();
  set_evs(node::EvMode::kExplicit, kFirst);
  EXPECT_TRUE(eventually([&] { return open_sockets() == before - kPaths; })) << open_sockets();
}

// The device chooses them. One EV is another each time; the others keep path and socket.
TEST_F(DevicePaths, PathsOfEvsThatStayKeepTheirSockets) {
  set_evs(node::EvMode::kAuto, 100);
  connect_over_profile();
  const std::size_t before = open_sockets();
  const std::uint32_t second = path(1);
  for (unsigned round = 1; round <= kRounds; ++round) {
    const std::uint32_t was = path(0);
    set_evs(node::EvMode::kAuto, 1000 + round, 1);
    ASSERT_TRUE(eventually([&] { return path(0) != was; })) << round;
    EXPECT_EQ(path(1), second) << round;
  }
  transfer();
  EXPECT_TRUE(eventually([&] { return open_sockets() == before; })) << open_sockets();
}

}  // namespace
}  // namespace mrc::nic::test
