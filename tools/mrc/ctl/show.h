// What a controller has set, as one document.
#pragma once

#include <nlohmann/json.hpp>

#include "ctl/session.h"

namespace mrc::tool::ctl {

// Limits, ports and profiles. EV profiles come with all their EVs when `evs` is set, otherwise with
// how many there are of each state.
nlohmann::ordered_json describe(const Session& session, bool evs);
// One EV profile with all its EVs.
nlohmann::ordered_json describe_ev_profile(const Session& session, std::uint64_t id, bool evs);

// Whether the EVs of a profile are shown as SRv6 addresses.
bool shows_addresses(const Session& session, std::uint64_t id);

void print_description(const nlohmann::ordered_json& document);
void print_ev_profile(const nlohmann::ordered_json& profile);

}  // namespace mrc::tool::ctl
