// A device for a controller to set up, and setups in few words.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "controller/apply.h"
#include "controller/words.h"
#include "unit/api/api_fixture.h"

namespace mrc::controller {

class ApplyTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kProfile = 7;
  static constexpr std::uint64_t kFormat = 1;  // of somebody else, and there all the time

  ApplyTest() : node_(api_test::PrivateNode::instance()), session_("") {
    create(session_, FormatSpec{.id = kFormat, .widths = {16, 16}});
  }
  void TearDown() override {
    for (const std::uint64_t id : session_.ev_ids())
      remove(session_, Kind::kEv, id);
    for (const std::uint64_t id : session_.cc_ids())
      remove(session_, Kind::kCc, id);
    for (const std::uint64_t id : session_.format_ids())
      remove(session_, Kind::kFormat, id);
    for (unsigned port = 1; port <= session_.port_count(); ++port)
      set_port(session_, port, true);
  }

  static EvSpec profile_of(std::uint64_t id, const std::vector<const char*>& evs) {
    EvSpec spec{.id = id,
                .mode = MRC_CTL_EV_MODE_EXP,
                .has_format = true,
                .format = kFormat,
                .min_active = 1};
    for (const char* const ev : evs)
      spec.evs.push_back(parse_ev(ev));
    return spec;
  }
  static controller::Setup setup_of(std::vector<EvSpec> profiles,
                                    std::vector<DenySpec> denies = {}) {
    controller::Setup setup;
    setup.ev_profiles = std::move(profiles);
    setup.denies = std::move(denies);
    return setup;
  }

  std::string states_of(std::uint64_t id) const {
    std::string text;
    for (const mrc_ctl_ev_op_entry& entry : read_evs(session_, id))
      text += (text.empty() ? "" : " ") + std::string(ev_state_text(entry.state));
    return text;
  }
  bool exists(Kind kind, std::uint64_t id) const {
    return state_of(session_, kind, id) != MRC_CTL_PROFILE_INIT;
  }

  api_test::PrivateNode& node_;
  Session session_;
  const EvSpec two_ = profile_of(kProfile, {"1:00000001", "1:00000002"});
};

}  // namespace mrc::controller
