// TOML texts of users, read so that no input harms: the only way to the parser beside that of the
// NIC, which must do without exceptions.
#pragma once

// Some of the parser's assertions are about its input ("[=" is one); the lines behind them report
// the error as they should.
// NOLINTBEGIN(readability-identifier-naming): the names are the library's.
#define TOML_ASSERT(condition) static_cast<void>(0)
#define TOML_HEADER_ONLY 0  // toml_file.cc holds its code
// NOLINTEND(readability-identifier-naming)
#include <toml++/toml.h>

#include <string>
#include <string_view>

namespace mrc::fabric {

// Where a key or value stands, as a prefix of an error: "file:line: ".
std::string place(const std::string& origin, const toml::source_region& source);

// Throws InputError with the place of the first error. `origin` names the text.
toml::table parse_toml(std::string_view text, const std::string& origin);
toml::table load_toml(const std::string& path);
// For those who need the text itself as well: InputError when it cannot be read.
std::string load_text(const std::string& path);

}  // namespace mrc::fabric
