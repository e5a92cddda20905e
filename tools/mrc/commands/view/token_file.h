// The token of the address, kept in a file so that open pages find a server that was started again.
#pragma once

#include <string>

namespace mrc::tool::view_tool {

// What the file holds; where there is none, a new token that the file holds from then on. Throws
// InputError, one line, for a file that somebody else could have written or could read.
std::string kept_token(const std::string& path);

}  // namespace mrc::tool::view_tool
