// Quantities as people write them: "10us", "2.5ms", "25%".
#pragma once

#include <optional>
#include <string_view>

#include "fabric/topology.h"

namespace mrc::fabric {

// A decimal number and one of ps, ns, us, ms, s; a bare 0 needs no unit. At most 1,000,000 s, and
// a whole number of picoseconds. Nothing when the text is not like that.
std::optional<Picoseconds> parse_time(std::string_view text);

// "25%" is 0.25. At most 100 %.
std::optional<double> parse_percent(std::string_view text);

// A whole number without sign or unit.
std::optional<unsigned> parse_number(std::string_view text);

}  // namespace mrc::fabric
