#include "fabric/host_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric_samples.h"

namespace mrc::fabric {
namespace {

using testing::HasSubstr;

TEST(HostFile, ARouteNamesAllPathsToAHost) {
  const Topology topology(two_tier());
  const Routing routing(topology);
  EXPECT_EQ(route_text(routing, 0, 9), "1000:8000*4:1002:101");
  EXPECT_EQ(route_text(routing, 0, 1), "1000:101");
  const Topology bundles({.planes = 1, .hosts = 4, .t0 = 2, .t1 = 2, .cables = 3});
  EXPECT_EQ(route_text(Routing(bundles), 0, 3), "1000:8000*6:1003/3:101");
}

TEST(HostFile, HasAPortForEachPlaneAndARouteToEachHost) {
  const Topology topology(two_tier());
  const std::string text = host_file(Routing(topology), 5, {"eth", 1});
  EXPECT_THAT(text, HasSubstr("# host:5, on port 1 of t0:1 in every plane"));
  EXPECT_THAT(text, HasSubstr("interface = \"eth2\"\naddress = \"fd00:2::6/64\"\n"
                              "usid_block = \"fc00:2::/32\"\n"));
  EXPECT_THAT(text, HasSubstr("evs_per_port = 4\n"));
  EXPECT_THAT(text, HasSubstr("to = \"fd00:1::10/128\"\nusids = \"1001:8000*4:1003:103\"\n"));
}

}  // namespace
}  // namespace mrc::fabric
