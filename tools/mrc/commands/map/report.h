// What `mrc map` has to say, for people and for programs.
#pragma once

#include <string>

#include "fabric/survey.h"

namespace mrc::tool::map {

void print_survey(const fabric::Survey& survey);
// One object; over several lines when `pretty`.
void print_json(const fabric::Survey& survey, bool pretty);
// "t0:0/t1:2/plane:1 is down", "host:3/plane:0 loses 1.1 % (0.8 to 1.5 %)".
std::string finding_text(const fabric::Finding& finding);

}  // namespace mrc::tool::map
