// What a controller has set, as one document.
#pragma once

#include <nlohmann/json.hpp>

#include "controller/session.h"

namespace mrc::tool::ctl {

// Limits, ports and profiles. EV profiles come with all their EVs when `evs` is set, otherwise with
// how many there are of each state.
nlohmann::ordered_json describe(const controller::Session& session, bool evs);
// One EV profile with all its EVs.
nlohmann::ordered_json describe_ev_profile(const controller::Session& session, std::uint64_t id,
                                           bool evs);

void print_description(const nlohmann::ordered_json& document);
void print_ev_profile(const nlohmann::ordered_json& profile);

}  // namespace mrc::tool::ctl
