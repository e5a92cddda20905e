#include "commands/manual/command_text.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

namespace mrc::tool::manual {
namespace {

// "{linux,frr,sonic}" -> its three words.
std::vector<std::string> members(std::string_view set) {
  std::vector<std::string> words;
  std::string_view rest = set.substr(1, set.size() - 2);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    words.emplace_back(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return words;
}

// The parser keeps the name of the type and what its checks say in one text: "TEXT:{mrc,kernel}",
// "UINT:INT in [1 - 64]".
void read_type(const std::string& type, OptionText& option) {
  const std::size_t colon = type.find(':');
  option.value = type.substr(0, colon);
  if (colon == std::string::npos) return;
  const std::string check = type.substr(colon + 1);
  const std::size_t range = check.find(" in [");
  if (check.size() > 2 && check.front() == '{' && check.back() == '}') {
    option.choices = members(check);
  } else if (range != std::string::npos && check.back() == ']') {
    option.limits = check.substr(range + 5, check.size() - range - 6);
  }
}

OptionText describe(const CLI::Option& declared) {
  OptionText option;
  if (declared.get_positional()) {
    option.names = {declared.get_name(true, false)};
  } else {
    for (const std::string& name : declared.get_snames())
      option.names.push_back("-" + name);
    for (const std::string& name : declared.get_lnames())
      option.names.push_back("--" + name);
  }
  if (declared.get_type_size() != 0) {
    read_type(declared.get_type_name(), option);
    option.default_value = declared.get_default_str();
  }
  option.help = declared.get_description();
  option.required = declared.get_required();
  option.repeats = declared.get_expected_max() > 1;
  return option;
}

std::vector<OptionText> options_of(const CLI::App& app, const std::string& group, bool positional) {
  std::vector<OptionText> options;
  for (const CLI::Option* option : app.get_options())
    if (option->get_group() == group && option->get_positional() == positional)
      options.push_back(describe(*option));
  return options;
}

}  // namespace

CommandText describe(const CLI::App& app) {
  CommandText command;
  for (const CLI::App* part = &app; part != nullptr; part = part->get_parent())
    command.path.insert(command.path.begin(), part->get_name());
  command.summary = app.get_description();
  command.footer = app.get_footer();
  command.runs_programs = app.get_prefix_command();
  for (const std::string& group : app.get_groups()) {
    if (group.empty()) continue;
    for (OptionText& positional : options_of(app, group, true))
      command.positionals.push_back(std::move(positional));
    std::vector<OptionText> options = options_of(app, group, false);
    if (!options.empty()) command.groups.push_back({group, std::move(options)});
  }
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!below->get_group().empty()) command.commands.push_back(describe(*below));
  return command;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : between) + word;
  return text;
}

std::vector<OptionText> all_options(const CommandText& command) {
  std::vector<OptionText> options;
  for (const OptionGroup& group : command.groups)
    options.insert(options.end(), group.options.begin(), group.options.end());
  return options;
}

}  // namespace mrc::tool::manual
