// The configuration file's language: TOML to drafts of devices.
#pragma once

#include <string>

#include "node/config_draft.h"

namespace mrc::node {

// Adds what the text says to `drafts`, key by key; what it does not mention stays. The text of an
// error, "file:line:column: what", empty when there is none.
std::string read_toml(const std::string& text, const std::string& file_name, DeviceDrafts& drafts);

}  // namespace mrc::node
