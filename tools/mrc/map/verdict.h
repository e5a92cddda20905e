// What `mrc map` has to say, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "fabric/diagnosis.h"
#include "map/results.h"

namespace mrc::tool::map {

struct Verdict {
  fabric::Diagnosis diagnosis;
  std::vector<unsigned> hosts;  // that probed
  std::uint64_t loops = 0;
  std::uint64_t sent = 0;
  std::uint64_t answered = 0;
};

// Results of the same loop count together. All must be of fabrics of the same shape (InputError).
Verdict judge(const std::vector<Results>& results);

void print_verdict(const Verdict& verdict);
// One object; over several lines when `pretty`.
void print_json(const Verdict& verdict, bool pretty);
// "t0:0/t1:2/plane:1 is down", "host:3/plane:0 loses 1.1 % (0.8 to 1.5 %)".
std::string finding_text(const fabric::Finding& finding);

}  // namespace mrc::tool::map
