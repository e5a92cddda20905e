#include "core/event.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace mrc::core {
namespace {

// Names of all values up to `last`.
template <typename Enum>
std::set<std::string_view> names_up_to(Enum last, const char* (*name)(Enum)) {
  std::set<std::string_view> names;
  for (std::uint8_t i = 0; i <= static_cast<std::uint8_t>(last); ++i)
    names.insert(name(Enum{i}));
  return names;
}

TEST(EventNames, EveryKindHasOneOfItsOwn) {
  const auto names = names_up_to(EventKind::kAccessRefused, event_kind_name);
  EXPECT_EQ(names.size(), static_cast<std::size_t>(EventKind::kAccessRefused) + 1);
  EXPECT_EQ(names.count("unknown"), 0U);
}

TEST(EventNames, EveryStateOfAPathHasOneOfItsOwn) {
  const auto names = names_up_to(EvState::kDenied, ev_state_name);
  EXPECT_EQ(names, (std::set<std::string_view>{"good", "skip", "assumed_bad", "denied"}));
}

TEST(EventNames, WhatIsNoValueIsCalledUnknown) {
  EXPECT_STREQ(event_kind_name(EventKind{200}), "unknown");
  EXPECT_STREQ(ev_state_name(EvState{200}), "unknown");
}

// What people and programs search their logs for.
TEST(EventNames, SayWhatHappened) {
  EXPECT_STREQ(event_kind_name(EventKind::kQpError), "qp_error");
  EXPECT_STREQ(event_kind_name(EventKind::kPlaneLost), "plane_lost");
  EXPECT_STREQ(event_kind_name(EventKind::kPlaneBack), "plane_back");
  EXPECT_STREQ(event_kind_name(EventKind::kLocalPort), "local_port");
  EXPECT_STREQ(event_kind_name(EventKind::kRemotePorts), "remote_ports");
}

}  // namespace
}  // namespace mrc::core
