#include "node/known_variables.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "node/config.h"

namespace mrc::node {
namespace {

TEST(KnownVariables, SlipsOfThePenAreTakenForWhatWasMeant) {
  EXPECT_EQ(nearest_variable("MRC_PLANE"), "MRC_PLANES");
  EXPECT_EQ(nearest_variable("MRC_IFACE"), "MRC_IFACES");
  EXPECT_EQ(nearest_variable("MRC_PROT"), "MRC_PORT");
  EXPECT_EQ(nearest_variable("MRC_STATEDIR"), "MRC_STATE_DIR");
  EXPECT_EQ(nearest_variable("MRC_EV"), "MRC_EVS");
  EXPECT_EQ(nearest_variable("MRC_LOGLEVEL"), "MRC_LOG_LEVEL");
}

TEST(KnownVariables, OtherPeoplesVariablesAreLeftAlone) {
  for (const char* name :
       {"MRC_HOME", "MRC_LIB", "MRC_LIBDIR", "MRC_LIB_DIR", "MRC_LIB_SO", "MRC_TEST_RESULTS",
        "MRC_SOMETHING_ELSE", "MRC_FOO", "MRC_ROOT", "MRC_HOST", "MRC_BOOT", "MRC_DEVS"}) {
    EXPECT_EQ(nearest_variable(name), "") << name;
  }
}

TEST(KnownVariables, NoTwoOfOursAreSoNearThatOneIsASlipOfTheOther) {
  for (const KnownVariable& known : known_variables()) {
    EXPECT_TRUE(is_known_variable(known.name));
    const std::string nearest = nearest_variable(known.name);
    EXPECT_TRUE(nearest == known.name || nearest.empty()) << known.name << " " << nearest;
  }
}

TEST(KnownVariables, AMisspeltOneIsRefusedByName) {
  ::setenv("MRC_CONFIG", "/dev/null", 1);
  ::setenv("MRC_PLANE", "2", 1);
  const ConfigResult result = load_config();
  ::unsetenv("MRC_PLANE");
  EXPECT_EQ(result.error, "environment: there is no variable MRC_PLANE; is MRC_PLANES meant?");
  EXPECT_TRUE(result.devices.empty());
  EXPECT_EQ(load_config().error, "");
  ::unsetenv("MRC_CONFIG");
}

}  // namespace
}  // namespace mrc::node
