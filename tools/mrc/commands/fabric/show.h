// What `mrc fabric show` and `mrc fabric presets` print.
#pragma once

#include "fabric/routing.h"

namespace mrc::tool::fabric_view {

void print_presets();

// The fabric as a whole.
void print_summary(const fabric::Routing& routing);
void print_summary_json(const fabric::Routing& routing);

// The static table of one switch.
void print_table(const fabric::Routing& routing, const fabric::Node& at);
void print_table_json(const fabric::Routing& routing, const fabric::Node& at);

}  // namespace mrc::tool::fabric_view
