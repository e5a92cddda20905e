// The hosts of `mrc check --hosts`.
#pragma once

#include <istream>
#include <string>
#include <vector>

namespace mrc::tool::check {

struct Host {
  std::string name;     // as people know it
  std::string address;  // where ssh goes: the name unless another is given, user@ before it or not

  // Where other hosts find it.
  std::string place() const { return address.substr(address.find('@') + 1); }
};

// A word that means itself on every command line, the one of a remote shell among them: letters,
// digits and . - _ : @ % + / ,, not beginning with a dash.
bool is_plain_word(const std::string& word);

// A file, one host a line (`name` or `name address`, comments begin with #), or names with commas
// between. Throws fabric::InputError that names the line of what is no host.
std::vector<Host> read_hosts(const std::string& text);
std::vector<Host> parse_hosts(std::istream& lines, const std::string& source);

}  // namespace mrc::tool::check
