// Goodput over time as columns of blocks, with the moments of the timeline marked below.
#pragma once

#include "demo/report.h"
#include "demo/timeline.h"
#include "terminal.h"

namespace mrc::demo {

void print_goodput_chart(const Report& report, const std::vector<Moment>& moments,
                         const tool::Terminal& terminal);

}  // namespace mrc::demo
