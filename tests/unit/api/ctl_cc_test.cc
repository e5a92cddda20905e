// CC profiles.
#include <cmath>

#include "unit/api/ctl_fixture.h"

namespace mrc::api {
namespace {

class CtlCc : public test::CtlTest {
 protected:
  static constexpr int kState = MRC_CTL_CC_PROFILE_STATE;
  static constexpr int kAlgorithm = MRC_CTL_CC_PROFILE_ALGORITHM;
  static constexpr int kConfig = MRC_CTL_CC_PROFILE_CONFIG;

  int modify(std::uint64_t id, int mask, mrc_ctl_cc_profile_attr attr) {
    return why(mrc_ctl_modify_cc_profile(ctx(), id, &attr, mask));
  }
  int create(std::uint64_t id, const char* algorithm) {
    mrc_ctl_cc_profile_attr attr{};
    attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
    attr.algorithm = algorithm;
    return modify(id, kState | kAlgorithm, attr);
  }
  int set_state(std::uint64_t id, mrc_ctl_profile_state state) {
    mrc_ctl_cc_profile_attr attr{};
    attr.profile_state = state;
    return modify(id, kState, attr);
  }
  int configure(std::uint64_t id, const mrc_ctl_cc_nscc_cfg* config, int extra = 0) {
    mrc_ctl_cc_profile_attr attr{};
    attr.profile_state = MRC_CTL_PROFILE_ONLINE;
    attr.cc_config = config;
    return modify(id, kConfig | extra, attr);
  }
};

TEST_F(CtlCc, TheFirstVendorByteSaysWhetherSwitchesTrim) {
  ASSERT_EQ(create(1, "uet-1.0-nscc"), 0);
  mrc_ctl_cc_profile_attr attr{};
  for (const std::uint8_t trimming : {1, 2, 0}) {
    attr.vendor_cfg[0] = trimming;
    ASSERT_EQ(modify(1, MRC_CTL_CC_PROFILE_VENDOR_CFG, attr), 0);
    mrc_ctl_cc_profile_attr now{};
    ASSERT_EQ(why(mrc_ctl_query_cc_profile(ctx(), 1, &now, MRC_CTL_CC_PROFILE_VENDOR_CFG)), 0);
    EXPECT_EQ(now.vendor_cfg[0], trimming);
  }
}

TEST_F(CtlCc, GoesThroughItsWholeLifeAndOnlyThat) {
  EXPECT_EQ(set_state(1, MRC_CTL_PROFILE_ONLINE), EINVAL);
  EXPECT_EQ(set_state(1, MRC_CTL_PROFILE_OFFLINE), EINVAL);
  ASSERT_EQ(create(1, "uet-1.0-nscc"), 0);
  EXPECT_EQ(set_state(1, MRC_CTL_PROFILE_ONLINE), EINVAL);
  EXPECT_EQ(set_state(1, MRC_CTL_PROFILE_OFFLINE), EINVAL);
  const mrc_ctl_cc_nscc_cfg config{};
  ASSERT_EQ(configure(1, &config, kState), 0);
  EXPECT_EQ(set_state(1, MRC_CTL_PROFILE_ONLINE), EINVAL);
  EXPECT_EQ(set_state(1, MRC_CTL_PROFILE_INIT), EINVAL);
  EXPECT_EQ(set_state(1, MRC_CTL_PROFILE_OFFLINE), 0);
  EXPECT_EQ(set_state(1, MRC_CTL_PROFILE_ONLINE), 0);
  EXPECT_EQ(set_state(1, MRC_CTL_PROFILE_OFFLINE), 0);
  EXPECT_EQ(set_state(1, MRC_CTL_PROFILE_INIT), 0);
  EXPECT_TRUE(node().snapshot()->cc_profiles.empty());
}

TEST_F(CtlCc, TheSettingsReachTheEngine) {
  const mrc_ctl_cc_nscc_cfg config{.disable_qa = 1,
                                   .adjust_bytes_threshold = 2,
                                   .adjust_period_threshold = 3,
                                   .base_rtt = 4,
                                   .eta = 5.5F,
                                   .fi = 6.5F,
                                   .fi_scale = 7.5F,
                                   .gamma = 0.8F,
                                   .max_md_jump = 0.5F,
                                   .max_cwnd = 10,
                                   .qa_gate = 11,
                                   .qa_threshold = 12,
                                   .target_delay = 13};
  ASSERT_EQ(create(1, "uet-1.0-nscc"), 0);
  ASSERT_EQ(configure(1, &config, kState), 0);
  const core::NsccParameters nscc = node().snapshot()->cc_profiles.at(1).cc.nscc;
  EXPECT_TRUE(nscc.disable_qa);
  EXPECT_EQ(nscc.adjust_bytes_threshold, 2u);
  EXPECT_EQ(nscc.adjust_period_threshold_ns, 3u);
  EXPECT_EQ(nscc.base_rtt_ns, 4u);
  EXPECT_EQ(nscc.eta, 5.5F);
  EXPECT_EQ(nscc.fi, 6.5F);
  EXPECT_EQ(nscc.fi_scale, 7.5F);
  EXPECT_EQ(nscc.gamma, 0.8F);
  EXPECT_EQ(nscc.max_md_jump, 0.5F);
  EXPECT_EQ(nscc.max_cwnd, 10u);
  EXPECT_EQ(nscc.qa_gate, 11);
  EXPECT_EQ(nscc.qa_threshold_ns, 12u);
  EXPECT_EQ(nscc.target_delay_ns, 13u);
  mrc_ctl_cc_profile_attr attr{};
  ASSERT_EQ(why(mrc_ctl_query_cc_profile(ctx(), 1, &attr, kState | kAlgorithm | kConfig)), 0);
  EXPECT_EQ(attr.profile_state, MRC_CTL_PROFILE_ONLINE);
  EXPECT_STREQ(attr.algorithm, "uet-1.0-nscc");
  ASSERT_NE(attr.cc_config, nullptr);
  const auto* back = static_cast<const mrc_ctl_cc_nscc_cfg*>(attr.cc_config);
  EXPECT_EQ(back->target_delay, 13u);
  EXPECT_EQ(back->gamma, 0.8F);
}

TEST_F(CtlCc, NoAlgorithmNeedsNoSettings) {
  ASSERT_EQ(create(1, nullptr), 0);
  ASSERT_EQ(set_state(1, MRC_CTL_PROFILE_ONLINE), 0);
  EXPECT_EQ(node().snapshot()->cc_profiles.at(1).cc.algorithm, core::CcAlgorithm::kNone);
  mrc_ctl_cc_profile_attr attr{};
  attr.algorithm = "x";
  ASSERT_EQ(why(mrc_ctl_query_cc_profile(ctx(), 1, &attr, kAlgorithm | kConfig)), 0);
  EXPECT_EQ(attr.algorithm, nullptr);
  EXPECT_EQ(attr.cc_config, nullptr);
}

TEST_F(CtlCc, TheAlgorithmMustBeKnownAndChangesOnlyOffline) {
  EXPECT_EQ(create(1, "dcqcn"), EINVAL);
  EXPECT_EQ(create(1, ""), EINVAL);
  EXPECT_EQ(create(1, "uet-1.0-nscc-and-more"), EINVAL);
  ASSERT_EQ(create(1, "uet-1.0-nscc"), 0);
  mrc_ctl_cc_profile_attr attr{};
  EXPECT_EQ(modify(1, kAlgorithm, attr), 0) << "none";
  attr.algorithm = "uet-1.0-nscc";
  EXPECT_EQ(modify(1, kAlgorithm, attr), 0);
  EXPECT_EQ(set_state(1, MRC_CTL_PROFILE_ONLINE), EINVAL) << "another one has settings of its own";
  mrc_ctl_cc_nscc_cfg config{};
  ASSERT_EQ(configure(1, &config, kState), 0);
  EXPECT_EQ(modify(1, kAlgorithm, attr), 0) << "said again";
  attr.algorithm = nullptr;
  EXPECT_EQ(modify(1, kAlgorithm, attr), EINVAL);
}

TEST_F(CtlCc, UsersKeepItOnline) {
  ASSERT_EQ(create(1, nullptr), 0);
  ASSERT_EQ(set_state(1, MRC_CTL_PROFILE_ONLINE), 0);
  ASSERT_EQ(node().add_user(node::ProfileKind::kCc, 1), 0);
  EXPECT_EQ(set_state(1, MRC_CTL_PROFILE_OFFLINE), EBUSY);
  node().remove_user(node::ProfileKind::kCc, 1);
  EXPECT_EQ(set_state(1, MRC_CTL_PROFILE_OFFLINE), 0);
}

TEST_F(CtlCc, SettingsChangeOnline) {
  ASSERT_EQ(create(1, "uet-1.0-nscc"), 0);
  mrc_ctl_cc_nscc_cfg config{};
  ASSERT_EQ(configure(1, &config, kState), 0);
  config.max_cwnd = 1 << 20;
  EXPECT_EQ(configure(1, &config), 0);
  EXPECT_EQ(node().snapshot()->cc_profiles.at(1).cc.nscc.max_cwnd, 1u << 20);
}

TEST_F(CtlCc, WrongArgumentsChangeNothing) {
  ASSERT_EQ(create(1, "uet-1.0-nscc"), 0);
  const std::uint64_t before = version();
  mrc_ctl_cc_profile_attr attr{};
  EXPECT_EQ(why(mrc_ctl_modify_cc_profile(nullptr, 1, &attr, kState)), EINVAL);
  EXPECT_EQ(why(mrc_ctl_modify_cc_profile(ctx(), 1, nullptr, kState)), EINVAL);
  EXPECT_EQ(modify(1, 0, attr), EINVAL);
  EXPECT_EQ(modify(1, 1 << 4, attr), EINVAL);
  EXPECT_EQ(configure(1, nullptr), EINVAL);
  EXPECT_EQ(configure(2, nullptr), EINVAL);
  mrc_ctl_cc_nscc_cfg config{};
  config.gamma = NAN;
  EXPECT_EQ(configure(1, &config), EINVAL);
  config.gamma = 0;
  config.eta = INFINITY;
  EXPECT_EQ(configure(1, &config, kState), EINVAL);
  EXPECT_EQ(why(mrc_ctl_query_cc_profile(nullptr, 1, &attr, kState)), EINVAL);
  EXPECT_EQ(why(mrc_ctl_query_cc_profile(ctx(), 1, nullptr, kState)), EINVAL);
  EXPECT_EQ(why(mrc_ctl_query_cc_profile(ctx(), 1, &attr, 0)), EINVAL);
  EXPECT_EQ(why(mrc_ctl_query_cc_profile(ctx(), 2, &attr, kAlgorithm)), EINVAL);
  attr.vendor_cfg[0] = 3;
  EXPECT_EQ(modify(1, MRC_CTL_CC_PROFILE_VENDOR_CFG, attr), EINVAL);
  attr.vendor_cfg[0] = 0;
  attr.vendor_cfg[1] = 1;
  EXPECT_EQ(modify(1, MRC_CTL_CC_PROFILE_VENDOR_CFG, attr), EINVAL);
  attr.cur_profile_state = MRC_CTL_PROFILE_ONLINE;
  EXPECT_EQ(modify(1, MRC_CTL_CC_PROFILE_CUR_STATE, attr), EINVAL);
  EXPECT_EQ(version(), before);
}

}  // namespace
}  // namespace mrc::api
