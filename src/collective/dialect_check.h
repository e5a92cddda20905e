// Ends that exchange addresses before they talk say which dialect of the wire they speak, so that
// two who would not understand each other learn it from a line and not from silence.
#pragma once

#include <string>
#include <string_view>

namespace mrc::collective {

// Both as wire::dialect_text() has them; one who says nothing is older than dialects. Throws a
// Failure that names the field, both values and what to do, when the peer speaks another dialect
// or none that we know.
void check_dialect(std::string_view own, std::string_view theirs, const std::string& peer);

}  // namespace mrc::collective
