// What happens to a C++ exception where there is no unwinding.
#pragma once

#include <string_view>

namespace mrc::playground {

// What is being worked on, for the message of an exception: "--bytes". Empty: nothing.
void set_context(std::string_view context);

}  // namespace mrc::playground
