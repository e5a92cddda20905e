// The line for a person whose peer speaks another dialect: which field, both values, what to do.
// For all that exchange dialects at set-up: the API's extension and the collectives.
#pragma once

#include <span>
#include <string_view>

#include "wire/dialect.h"

namespace mrc::os {

// Ends with a zero byte and is cut where `out` ends; 256 bytes are enough for a peer's name of 60.
void describe_conflict(std::string_view peer, const wire::Dialect& own, const wire::Dialect& theirs,
                       const wire::DialectField& field, std::span<char> out);

}  // namespace mrc::os
