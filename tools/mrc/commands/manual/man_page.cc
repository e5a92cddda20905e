#include "commands/manual/man_page.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "exit_code.h"

namespace mrc::tool::manual {
namespace {

std::string bold(const std::string& text) { return "\\fB" + troff_text(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + troff_text(text) + "\\fR"; }

std::string upper(std::string text) {
  for (char& letter : text)
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return text;
}

std::string ended(const std::string& sentence) {
  return sentence.empty() || sentence.back() == '.' ? sentence : sentence + ".";
}

// Lines that begin with spaces stay as they are; between them is prose, which flows. What announces
// something is a paragraph of its own.
void write_prose(std::ostream& out, const std::string& text) {
  std::istringstream lines(text);
  bool example = false;
  bool begins = true;  // a paragraph
  for (std::string line; std::getline(lines, line);) {
    const bool indented = !line.empty() && line.front() == ' ';
    const bool breaks = line.empty() || (!indented && line.back() == ':');
    if (indented != example) {
      out << (indented ? ".PP\n.nf\n" : ".fi\n.PP\n");
    } else if (breaks && !begins) {
      out << ".PP\n";
    }
    if (!line.empty()) out << troff_text(line) << '\n';
    begins = line.empty();
    example = indented;
  }
  if (example) out << ".fi\n";
}

void write_synopsis(std::ostream& out, const CommandText& command) {
  out << bold(joined(command.path));
  if (!command.groups.empty()) out << " [" << italic("OPTION") << "...]";
  for (const OptionText& positional : command.positionals) {
    const std::string name = italic(positional.names.front()) + (positional.repeats ? "..." : "");
    out << ' ' << (positional.required ? name : "[" + name + "]");
  }
  if (command.runs_programs) out << ' ' << italic("PROGRAM") << " [" << italic("WORD") << "...]";
  if (!command.commands.empty()) out << ' ' << italic("COMMAND") << " ...";
  out << '\n';
}

void write_option(std::ostream& out, const OptionText& option, bool positional) {
  out << ".TP\n";
  std::string names;
  for (const std::string& name : option.names)
    names += (names.empty() ? "" : ", ") + (positional ? italic(name) : bold(name));
  out << names;
  if (!positional && !option.value.empty()) out << ' ' << italic(option.value);
  out << '\n' << troff_text(ended(option.help)) << '\n';
  if (!option.choices.empty())
    out << "One of: " << troff_text(joined(option.choices, ", ")) << ".\n";
  if (!option.limits.empty()) out << "Within " << troff_text(option.limits) << ".\n";
  if (option.required && !positional) out << "Has to be given.\n";
  if (!option.default_value.empty())
    out << "Default: " << troff_text(option.default_value) << ".\n";
}

void write_options(std::ostream& out, const CommandText& command) {
  for (const OptionText& positional : command.positionals)
    write_option(out, positional, true);
  for (const OptionGroup& group : command.groups) {
    if (group.name != "Options") out << ".PP\n" << bold(group.name + ":") << '\n';
    for (const OptionText& option : group.options)
      write_option(out, option, false);
  }
}

// A command below that of the page, and those below it.
void write_command(std::ostream& out, const CommandText& command) {
  out << ".SS " << troff_text(joined(command.path)) << '\n';
  write_synopsis(out, command);
  out << ".PP\n" << troff_text(ended(command.summary)) << '\n';
  write_options(out, command);
  if (!command.footer.empty()) {
    out << ".PP\n";
    write_prose(out, command.footer);
  }
  for (const CommandText& below : command.commands)
    write_command(out, below);
}

void write_commands(std::ostream& out, const CommandText& command, const PageInput& input) {
  if (command.commands.empty()) return;
  out << ".SH COMMANDS\n";
  for (const CommandText& below : command.commands) {
    if (input.commands_in_short) {
      out << ".TP\n" << bold(page_name(below)) << "(1)\n";
      out << troff_text(ended(below.summary)) << '\n';
    } else {
      write_command(out, below);
    }
  }
}

}  // namespace

std::string page_name(const CommandText& command) { return joined(command.path, "-"); }

std::string troff_text(const std::string& text) {
  std::string out;
  if (!text.empty() && (text.front() == '.' || text.front() == '\'')) out = "\\&";
  for (const char letter : text) {
    switch (letter) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      default:
        out += letter;
    }
  }
  return out;
}

std::string man_page(const CommandText& command, const PageInput& input) {
  std::ostringstream out;
  out << ".TH " << troff_text(upper(page_name(command))) << " 1 \"\" \"OpenMRC "
      << troff_text(input.version) << "\" \"OpenMRC\"\n";
  out << ".SH NAME\n" << troff_text(page_name(command)) << " \\- ";
  std::string summary = command.summary;
  if (!summary.empty() && summary.back() == '.') summary.pop_back();
  out << troff_text(summary) << '\n';
  out << ".SH SYNOPSIS\n";
  write_synopsis(out, command);
  if (!command.footer.empty()) {
    out << ".SH DESCRIPTION\n";
    write_prose(out, command.footer);
  }
  out << ".SH OPTIONS\n";
  write_options(out, command);
  write_commands(out, command, input);
  if (command.footer.find("Exit codes") == std::string::npos) {
    out << ".SH EXIT STATUS\n";
    write_prose(out, kExitCodesHelp);
  }
  out << ".SH FILES\nDocuments that are named here lie below\n"
      << bold("share/doc/openmrc") << " of the prefix that OpenMRC is installed in.\n";
  out << ".SH SEE ALSO\n";
  for (const std::string& name : input.also)
    out << ".BR " << troff_text(name) << " (1)" << (&name == &input.also.back() ? "" : ",") << '\n';
  return out.str();
}

}  // namespace mrc::tool::manual
