#include "controller/on_device.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "controller/words.h"
#include "unit/controller/apply_fixture.h"

namespace mrc::controller {
namespace {

class OnDevice : public ApplyTest {
 protected:
  // One that is made is found; one that `changes` make different is not.
  template <typename Spec>
  void expect_told_apart(const Spec& spec,
                         const std::vector<std::function<void(Spec&)>>& changes) const {
    EXPECT_FALSE(is_on_device(session_, spec)) << "not there yet";
    create(session_, spec);
    EXPECT_TRUE(is_on_device(session_, spec));
    for (std::size_t i = 0; i < changes.size(); ++i) {
      Spec other = spec;
      changes[i](other);
      EXPECT_FALSE(is_on_device(session_, other)) << "change " << i;
    }
  }
};

TEST_F(OnDevice, Formats) {
  expect_told_apart<FormatSpec>(
      {.id = 2, .widths = {8, 8}},
      {[](auto& spec) { spec.id = 3; }, [](auto& spec) { spec.mode = MRC_CTL_EV_FMT_MODE_UDP; },
       [](auto& spec) { spec.widths = {16}; }});
}

TEST_F(OnDevice, ExplicitProfiles) {
  expect_told_apart<EvSpec>(
      two_, {[](auto& spec) { spec.id = 8; }, [](auto& spec) { spec.count = 3; },
             [](auto& spec) { spec.min_active = 2; },
             [](auto& spec) { spec.event_mask = MRC_CTL_EV_GOOD; },
             [](auto& spec) { spec.format = 2; }, [](auto& spec) { spec.evs.pop_back(); },
             [](auto& spec) { std::swap(spec.evs[0], spec.evs[1]); }});
  EvSpec counted = two_;
  counted.count = 2;
  EXPECT_TRUE(is_on_device(session_, counted)) << "which comes to the same";
  set_ev_states(session_, kProfile, {two_.evs.front()}, MRC_CTL_EV_DENIED);
  EXPECT_TRUE(is_on_device(session_, two_)) << "in whatever state its EVs are";
}

TEST_F(OnDevice, GeneratedProfiles) {
  EvSpec spec{.id = kProfile,
              .mode = MRC_CTL_EV_MODE_GEN,
              .has_format = true,
              .format = kFormat,
              .count = 8,
              .min_active = 1};
  spec.fields = {parse_field("16:0xC000:0x3FFF"), parse_field("16:1")};
  expect_told_apart<EvSpec>(spec, {[](auto& other) { other.count = 9; },
                                   [](auto& other) { other.fields[1].init_val = 2; },
                                   [](auto& other) { other.mode = MRC_CTL_EV_MODE_AUTO; }});
}

TEST_F(OnDevice, AutomaticProfiles) {
  expect_told_apart<EvSpec>(
      {.id = kProfile, .count = 8, .min_active = 1},
      {[](auto& spec) { spec.count = 9; }, [](auto& spec) { spec.min_active = 0; }});
  EXPECT_TRUE(is_on_device(session_, EvSpec{.id = kProfile, .min_active = 1}));
}

TEST_F(OnDevice, CcProfiles) {
  CcSpec spec{.id = 3, .algorithm = parse_algorithm("nscc")};
  parse_cc_setting("gamma=0.8", spec.config);
  parse_cc_setting("disable_qa=1", spec.config);
  expect_told_apart<CcSpec>(spec, {[](auto& other) { other.algorithm = nullptr; },
                                   [](auto& other) { other.config.base_rtt = 12'000; },
                                   [](auto& other) { other.config.disable_qa = 0; }});
  CcSpec none{.id = 4};
  expect_told_apart<CcSpec>(none, {[](auto& other) { other.algorithm = parse_algorithm("nscc"); }});
  none.config.base_rtt = 12'000;
  EXPECT_TRUE(is_on_device(session_, none)) << "without an algorithm there is nothing to set";
}

TEST_F(OnDevice, OfflineIsNotThere) {
  create(session_, two_);
  set_state(session_, Kind::kEv, kProfile, MRC_CTL_PROFILE_OFFLINE);
  EXPECT_FALSE(is_on_device(session_, two_));
}

}  // namespace
}  // namespace mrc::controller
