// The loop behind every page.
#pragma once

#include <functional>
#include <string>

#include "commands/view/page_server.h"

namespace mrc::tool::view_tool {

// Of 128 bits that nobody guesses.
std::string fresh_token();

inline constexpr int kLookMs = 250;

// Until Ctrl-C or SIGTERM (os::Interrupt). `look`, where there is one, is called every kLookMs
// until it returns false; the server waits for it.
void serve(PageServer& server, const std::function<bool()>& look);

}  // namespace mrc::tool::view_tool
