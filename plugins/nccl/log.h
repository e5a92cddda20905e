// Messages for people through NCCL's own logger, so that they land where the user looks.
//
// The newest logger given to init() is used by all; before the first one, and in a child made by
// fork(), nothing is written. Any thread.
#pragma once

#include "nccl_net.h"

namespace mrc::nccl {

void set_logger(Logger logger);

// One line each, without a line end; `warn` is shown from NCCL_DEBUG=WARN on, `info` from INFO on.
[[gnu::format(printf, 1, 2)]] void log_warning(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void log_info(const char* format, ...);

// Tells all MRC_* variables that are set; only the first call does anything.
void log_settings_once();

}  // namespace mrc::nccl
