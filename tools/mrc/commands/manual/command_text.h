// What a command declares of itself to the parser, as plain values: the one source of --help, of
// the manual pages and of the completions of shells.
#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace mrc::tool::manual {

struct OptionText {
  std::vector<std::string> names;    // "-s", "--size"; of a positional its one name, as it is
  std::string value;                 // what it takes, such as "BYTES"; empty for a flag
  std::string limits;                // "1 - 1024", or empty
  std::vector<std::string> choices;  // all that it may be, or empty
  std::string default_value;
  std::string help;
  bool required = false;
  bool repeats = false;  // of a positional: there may be several
};

struct OptionGroup {
  std::string name;
  std::vector<OptionText> options;
};

struct CommandText {
  std::vector<std::string> path;  // {"mrc", "lab", "up"}
  std::string summary;
  std::vector<OptionText> positionals;
  std::vector<OptionGroup> groups;
  std::vector<CommandText> commands;
  std::string footer;          // prose; indented lines are examples and stay as they are
  bool runs_programs = false;  // what follows its own words is a program with its arguments
};

// Of a command and all below it; what --help does not show is left out.
CommandText describe(const CLI::App& app);

// {"mrc", "lab"} -> "mrc lab".
std::string joined(const std::vector<std::string>& words, const char* between = " ");

// The options of all groups, in their order.
std::vector<OptionText> all_options(const CommandText& command);

}  // namespace mrc::tool::manual
