#define TOML_IMPLEMENTATION  // NOLINT(readability-identifier-naming): the name is the library's
#include "fabric/toml_file.h"

#include <fstream>
#include <optional>
#include <sstream>

#include "base/one_line.h"
#include "base/toml_text.h"
#include "fabric/input_error.h"

namespace mrc::fabric {

std::string place(const std::string& origin, const toml::source_region& source) {
  return origin + ":" + std::to_string(source.begin.line) + ": ";
}

toml::table parse_toml(std::string_view text, const std::string& origin) {
  if (const std::optional<TextPosition> at = beyond_ascii(text)) {
    throw InputError(origin + ":" + std::to_string(at->line) + ": " + std::string(kBeyondAscii));
  }
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw InputError(place(origin, error.source()) + one_line(std::string(error.description())));
  }
}

std::string load_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  // An empty file is one that can be read, which only a first look tells from a folder.
  const bool is_empty = file.peek() == std::ifstream::traits_type::eof() && !file.bad();
  const bool was_read = file.is_open() && (is_empty || text << file.rdbuf());
  if (!was_read) throw InputError(path + ": cannot be read");
  return text.str();
}

toml::table load_toml(const std::string& path) { return parse_toml(load_text(path), path); }

}  // namespace mrc::fabric
