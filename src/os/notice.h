// Lines for people from parts that have no log of their own. Whoever has one sets the sink; without
// it they are dropped. Any thread; not under a lock that others wait for.
#pragma once

#include <string>

namespace mrc::os {

using NoticeSink = void (*)(const char* line);
void set_notice_sink(NoticeSink sink);

void notice(const std::string& line);

}  // namespace mrc::os
