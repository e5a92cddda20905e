// Results of loops as one line of JSON, between the hosts that probe and whoever draws conclusions.
#pragma once

#include <string>

#include "fabric/survey.h"

namespace mrc::tool::map {

std::string to_line(const fabric::HostResults& results);
// InputError for a line that is none, and for loops that its fabric does not have.
fabric::HostResults from_line(const std::string& line);

}  // namespace mrc::tool::map
